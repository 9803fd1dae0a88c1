package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/certs"
	"github.com/rollcall-registry/rollcall/internal/portmux"
)

// TLSConfig is whether and how ports speak TLS.
type TLSConfig struct {
	Files certs.Config
	// Mode is tlsBoth, tlsOnly, or empty for the default.
	Mode          string `config:"tls.mode" enum:"both,only" help:"Whether clear text is served beside TLS, on the same ports and told apart by the first byte (both), or refused (only)." unset:"both, and only when tls.client-ca is set"`
	MaxHandshakes int    `config:"tls.max-handshakes" help:"Most TLS handshakes at a time; one more waits for its turn, within http.header-timeout."`
}

const (
	tlsBoth = "both"
	tlsOnly = "only"
)

func defaultTLSConfig() TLSConfig { return TLSConfig{MaxHandshakes: 1000} }

// Enabled reports whether the ports speak TLS.
func (c TLSConfig) Enabled() bool { return c.Files.Enabled() }

// ClearText reports whether the ports speak clear text.
func (c TLSConfig) ClearText() bool {
	return !c.Enabled() || c.Mode != tlsOnly && c.Files.ClientCA == ""
}

// Validate reports all faults at once.
func (c TLSConfig) Validate() error {
	faults := []error{c.Files.Validate()}
	if c.Mode == tlsOnly && !c.Enabled() {
		faults = append(faults, errors.New("tls.mode: only needs tls.cert and tls.key"))
	}
	if c.Mode == tlsBoth && c.Files.ClientCA != "" {
		faults = append(faults, errors.New("tls.mode: both would let clients without a certificate in, in clear text, although tls.client-ca is set; give only, or nothing"))
	}
	if c.MaxHandshakes < 1 {
		faults = append(faults, fmt.Errorf("tls.max-handshakes: %d: give 1 or more", c.MaxHandshakes))
	}
	return errors.Join(faults...)
}

// assembleTLS reads the certificate, if there is to be one.
func (s *Server) assembleTLS(p *parts) (err error) {
	cfg := s.cfg.TLS
	if !cfg.Enabled() {
		return nil
	}
	if p.certs, err = certs.Load(cfg.Files, s.log); err != nil {
		return err
	}
	p.tls = portmux.NewTLS(portmux.TLSConfig{Settings: p.certs.TLS(), Only: !cfg.ClearText(), MaxHandshakes: cfg.MaxHandshakes})
	return nil
}

// watchCertificate reads the certificate again when it changes.
func (p *parts) watchCertificate(ctx context.Context) error {
	if p.certs == nil {
		<-ctx.Done()
		return nil
	}
	return p.certs.Run(ctx)
}
