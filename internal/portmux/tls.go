package portmux

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// TLSConfig is how ports speak TLS.
type TLSConfig struct {
	// Settings are those of package crypto/tls. The protocols are set by each [Mux]:
	// what it speaks, http/1.1 before h2, so that browsers get the former.
	Settings *tls.Config
	// Only refuses clear text, which is otherwise spoken on the same ports.
	Only bool
	// MaxHandshakes bounds the handshakes at a time, of all ports together. One more
	// waits for its turn, within [Config.Timeout].
	MaxHandshakes int
}

// TLS is the TLS of all ports of a server, with its counts. Create it with
// [NewTLS].
type TLS struct {
	cfg    TLSConfig
	turns  chan struct{} // holds a token for each handshake
	counts struct{ done, failed, clear atomic.Uint64 }
}

// NewTLS returns the TLS that a server's ports share.
func NewTLS(cfg TLSConfig) *TLS {
	return &TLS{cfg: cfg, turns: make(chan struct{}, cfg.MaxHandshakes)}
}

// Counts returns how many handshakes succeeded and failed, and how many clients
// spoke clear text, refused or not.
func (t *TLS) Counts() (done, failed, clearText uint64) {
	return t.counts.done.Load(), t.counts.failed.Load(), t.counts.clear.Load()
}

// settings returns the settings for a port on which some protocols are spoken.
func (t *TLS) settings(protocols []string) *tls.Config {
	return withProtocols(t.cfg.Settings, protocols)
}

func withProtocols(c *tls.Config, protocols []string) *tls.Config {
	c = c.Clone()
	c.NextProtos = protocols
	if current := c.GetConfigForClient; current != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			next, err := current(hello)
			if next == nil || err != nil {
				return nil, err
			}
			return withProtocols(next, protocols), nil
		}
	}
	return c
}

// handshake makes a TLS connection of nc, in its turn and within a time.
func (t *TLS) handshake(ctx context.Context, nc net.Conn, settings *tls.Config, timeout time.Duration) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case t.turns <- struct{}{}:
		defer func() { <-t.turns }()
	case <-ctx.Done():
		t.counts.failed.Add(1)
		return nil, fmt.Errorf("wait for a TLS handshake: %w", ctx.Err())
	}
	tc := tls.Server(nc, settings)
	if err := tc.HandshakeContext(ctx); err != nil {
		t.counts.failed.Add(1)
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	t.counts.done.Add(1)
	return tc, nil
}
