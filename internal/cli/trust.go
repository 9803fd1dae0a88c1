package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/spf13/pflag"
)

// The flags by which a command trusts a server over TLS and shows who it is.
// Without them the authorities of the system are trusted, and the name is the one
// of the URL.
const (
	flagCA   = "ca-file"
	flagCert = "cert-file"
	flagKey  = "key-file"
	flagName = "server-name"
)

const (
	envCA   = "ROLLCALL_CA_FILE"
	envCert = "ROLLCALL_CERT_FILE"
	envKey  = "ROLLCALL_KEY_FILE"
	envName = "ROLLCALL_SERVER_NAME"
)

// clientVariables are the variables that commands read which ask a server.
func clientVariables() []string {
	return []string{"ROLLCALL_SERVER", "ROLLCALL_NAMESPACE", envCA, envCert, envKey, envName}
}

func addTrustFlags(flags *pflag.FlagSet) {
	flags.String(flagCA, "", "PEM `file` of the authorities to trust for https, in place of the system's.\nenv "+envCA)
	flags.String(flagCert, "", "PEM `file` of a certificate to show to a server that asks for one.\nenv "+envCert)
	flags.String(flagKey, "", "PEM `file` of its private key.\nenv "+envKey)
	flags.String(flagName, "", "The `name` in the server's certificate, when it is asked under another.\nenv "+envName)
}

// trustOf returns the settings of TLS that flags and environment describe.
func (a *app) trustOf(flags *pflag.FlagSet) (*tls.Config, error) {
	var given [4]string
	for i, name := range []struct{ flag, env string }{{flagCA, envCA}, {flagCert, envCert}, {flagKey, envKey}, {flagName, envName}} {
		value, err := flags.GetString(name.flag)
		if err != nil {
			return nil, err
		}
		given[i] = cmp.Or(value, a.lookupEnv(name.env))
	}
	caFile, certFile, keyFile, serverName := given[0], given[1], given[2], given[3]
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
