package portmux

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

// said is a connection from loopback on which everything has been said.
type said struct{ *bytes.Reader }

func (said) Write(p []byte) (int, error) { return len(p), nil }
func (said) Close() error                { return nil }
func (said) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8848} }

func (said) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711} }
func (said) SetDeadline(time.Time) error      { return nil }
func (said) SetReadDeadline(time.Time) error  { return nil }
func (said) SetWriteDeadline(time.Time) error { return nil }

// Whatever a client begins with, a backend gets what it said, behind a PROXY header
// if there was one, and nothing else.
func FuzzBeginning(f *testing.F) {
	for _, data := range []string{
		"GET / HTTP/1.1\r\n\r\n", http2Start, "PRI * HTTP/1.1\r\n", "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", "",
		"PROXY TCP4 192.0.2.7 192.0.2.1 4711 8848\r\nGET / HTTP/1.1\r\n", "PROXY UNKNOWN\r\n" + http2Start, "PROXY TCP4 nonsense\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x22\x90\x16\x03\x01",
	} {
		f.Add([]byte(data), true)
		f.Add([]byte(data), false)
	}
	secure, _ := secured(f, nil)
	nobody := func(context.Context, net.Conn, []byte) {}
	muxOf := func(proxies ...netip.Prefix) *Mux {
		cfg := Config{Timeout: patience, Idle: patience, MaxPending: 1, Proxies: proxies, TLS: secure}
		return New(cfg, Backends{HTTP: nobody, GRPC: nobody}, slog.New(slog.DiscardHandler))
	}
	trusting, plain := muxOf(netip.MustParsePrefix("127.0.0.0/8")), muxOf()
	f.Fuzz(func(t *testing.T, data []byte, trusted bool) {
		m := plain
		if trusted {
			m = trusting
		}
		_, nc, prefix, err := m.look(t.Context(), said{bytes.NewReader(data)})
		if err != nil {
			return
		}
		rest, err := io.ReadAll(nc)
		if err != nil {
			t.Fatal(err)
		}
		got := append(bytes.Clone(prefix), rest...)
		if !trusted && !bytes.Equal(got, data) || !bytes.HasSuffix(data, got) {
			t.Errorf("said %q, got %q", data, got)
		}
	})
}
