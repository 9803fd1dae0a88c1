package portmux

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
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
// were refused because they spoke clear text.
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

const (
	// refusal is what a client reads that speaks clear text where it must not.
	refusal = "this port speaks TLS only: use https"
	// lingerTime and lingerBytes are how long such a client has to read it, and how
	// much of what it still sends is read: closing with something unread would lose
	// the refusal on its way.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
)

// refuse tells a client that it must speak TLS, in its own protocol, and returns
// that as an error.
func (t *TLS) refuse(nc net.Conn, h2 bool) error {
	t.counts.clear.Add(1)
	err := fmt.Errorf("clear text: %s", refusal)
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil || writeRefusal(nc, h2) != nil {
		return err
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
	return err
}

func writeRefusal(w io.Writer, h2 bool) error {
	if h2 {
		fr := http2.NewFramer(w, nil)
		if err := fr.WriteSettings(); err != nil {
			return err
		}
		return fr.WriteGoAway(0, http2.ErrCodeInadequateSecurity, []byte(refusal))
	}
	_, err := fmt.Fprintf(w, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n", len(refusal)+1, refusal)
	return err
}
