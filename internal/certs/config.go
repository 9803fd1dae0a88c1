package certs

import (
	"errors"
)

// Config names PEM files. Without any there is no TLS.
type Config struct {
	Cert     string `config:"tls.cert" value:"file" help:"PEM file of a certificate, followed by those between it and its authority. With it, --listen and --grpc-listen speak TLS. Read again on SIGHUP and within 30s of a change." unset:"no TLS"`
	Key      string `config:"tls.key" value:"file" help:"PEM file of the private key of tls.cert, read again with it."`
	ClientCA string `config:"tls.client-ca" value:"file" help:"PEM file of authorities. Each client must show a certificate that one of them signed. Read again with tls.cert." unset:"clients need no certificate"`
}

// Enabled reports whether there is to be TLS.
func (c Config) Enabled() bool { return c.Cert != "" }

// Validate reports all faults at once. It reads no file.
func (c Config) Validate() error {
	var faults []error
	if c.Cert != "" && c.Key == "" {
		faults = append(faults, errors.New("tls.key: the key of tls.cert is missing; name its file"))
	}
	if c.Cert == "" && c.Key != "" {
		faults = append(faults, errors.New("tls.cert: the certificate of tls.key is missing; name its file"))
	}
	if c.Cert == "" && c.ClientCA != "" {
		faults = append(faults, errors.New("tls.client-ca: it needs tls.cert and tls.key too"))
	}
	return errors.Join(faults...)
}
