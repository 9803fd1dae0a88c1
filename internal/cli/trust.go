package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// trust returns the settings of TLS. Without any, the authorities of the system are
// trusted, and the name is the one of the URL.
func (s *clientSettings) trust() (*tls.Config, error) {
	caFile, certFile, keyFile, serverName := s.get(flagCA), s.get(flagCert), s.get(flagKey), s.get(flagName)
	trust := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flagCA, err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", flagCA, caFile)
		}
	}
	if certFile == "" && keyFile == "" {
		return trust, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, fmt.Errorf("%s and %s: give both or none", flagCert, flagKey)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagCert, err)
	}
	trust.Certificates = []tls.Certificate{pair}
	return trust, nil
}

// untrusted says what to do about a failed handshake, or nothing when err is
// another fault.
func untrusted(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var alert *net.OpError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return "its certificate is signed by nobody that is trusted; name its authority with --" + flagCA
	case errors.As(err, &name):
		return "its certificate is for another name; ask it under that, or give that with --" + flagName
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS; ask with http://"
	case errors.As(err, &alert) && alert.Op == "remote error": // as crypto/tls calls an alert of its peer
		return "it refuses the handshake; it may ask for a certificate, see --" + flagCert
	default:
		return ""
	}
}
