package portmux

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
)

// secured returns TLS for loopback, and the settings of clients that trust it.
func secured(t testing.TB, change func(*TLSConfig)) (*TLS, *tls.Config) {
	t.Helper()
	authority := certstest.NewAuthority(t)
	cfg := TLSConfig{
		Settings:      &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, 1, time.Now().Add(time.Hour)).Certificate(t)}},
		MaxHandshakes: 100,
	}
	if change != nil {
		change(&cfg)
	}
	return NewTLS(cfg), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
}

// startSecured serves a mux with TLS.
func startSecured(t *testing.T, change func(*TLSConfig), more func(*Config, *Backends)) (address string, arrivals <-chan arrival, secure *TLS, client *tls.Config) {
	t.Helper()
	secure, client = secured(t, change)
	address, arrivals = start(t, func(c *Config, b *Backends) {
		c.TLS = secure
		if more != nil {
			more(c, b)
		}
	})
	return address, arrivals, secure, client
}

// offering returns the settings of a client that offers protocols.
func offering(c *tls.Config, protocols ...string) *tls.Config {
	c = c.Clone()
	c.NextProtos = protocols
	return c
}

// counted waits until so many handshakes are done and failed, and so many clients
// spoke clear text: a client may know before it is counted.
func counted(t *testing.T, secure *TLS, want [3]uint64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		done, failed, clearText := secure.Counts()
		if got := [3]uint64{done, failed, clearText}; got == want {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("counted %v, want %v", got, want)
		}
	}
}

// Everything that a fleet speaks is served on one port.
func TestClearTextAndTLS(t *testing.T) {
	address, arrivals, secure, client := startSecured(t, nil, nil)
	for _, said := range []string{"GET / HTTP/1.1\r\nend", http2Start + "end"} {
		send(t, dial(t, address), said)
		if got := next(t, arrivals); got.data != said || (got.backend == "GRPC") != strings.HasPrefix(said, "PRI") {
			t.Errorf("clear text %q: got %+v", said, got)
		}
	}
	for _, tt := range []struct {
		offer         []string
		said, backend string
		protocol      string
	}{
		{[]string{"h2", "http/1.1"}, "GET / HTTP/1.1\r\nend", "HTTP", "http/1.1"}, // a browser
		{[]string{"h2"}, http2Start + "end", "GRPC", "h2"},
		{[]string{"grpc-exp", "h2"}, http2Start + "end", "GRPC", "h2"},
		{nil, http2Start + "end", "GRPC", ""},
		{nil, "GET / HTTP/1.1\r\nend", "HTTP", ""},
	} {
		nc := dial(t, address)
		tc := tls.Client(nc, offering(client, tt.offer...))
		if err := tc.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tc.ConnectionState().NegotiatedProtocol; got != tt.protocol {
			t.Errorf("offered %v, agreed on %q", tt.offer, got)
		}
		if _, err := io.WriteString(tc, tt.said); err != nil {
			t.Fatal(err)
		}
		if got := next(t, arrivals); got.backend != tt.backend || got.data != tt.said || got.peer != nc.LocalAddr().String() {
			t.Errorf("offered %v: got %+v", tt.offer, got)
		}
		if greeting, err := io.ReadAll(tc); string(greeting) != tt.backend {
			t.Errorf("offered %v: greeted with %q, %v", tt.offer, greeting, err)
		}
	}
	counted(t, secure, [3]uint64{5, 0, 2})
}

// A client that has agreed on a protocol need not say more to be served.
func TestAgreedProtocolDecides(t *testing.T) {
	decided := make(chan string, 1)
	address, _, _, client := startSecured(t, nil, func(_ *Config, b *Backends) {
		b.HTTP = func(_ context.Context, nc net.Conn, prefix []byte) {
			decided <- "HTTP" + string(prefix)
			_ = nc.Close()
		}
		b.GRPC = func(_ context.Context, nc net.Conn, prefix []byte) {
			decided <- "GRPC" + string(prefix)
			_ = nc.Close()
		}
	})
	for offer, want := range map[string]string{"http/1.1": "HTTP", "h2": "GRPC"} {
		tc := tls.Client(dial(t, address), offering(client, offer))
		if err := tc.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-decided:
			if got != want {
				t.Errorf("%s went to %q", offer, got)
			}
		case <-time.After(patience):
			t.Fatalf("%s was not enough", offer)
		}
	}
}

// A port that speaks gRPC alone agrees on nothing else.
func TestTLSOfOneBackend(t *testing.T) {
	address, arrivals, _, client := startSecured(t, nil, func(_ *Config, b *Backends) { b.HTTP = nil })
	tc := tls.Client(dial(t, address), offering(client, "http/1.1", "h2"))
	if _, err := io.WriteString(tc, http2Start+"end"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, arrivals); got.backend != "GRPC" || tc.ConnectionState().NegotiatedProtocol != "h2" {
		t.Errorf("got %+v over %q", got, tc.ConnectionState().NegotiatedProtocol)
	}
	web := tls.Client(dial(t, address), offering(client, "http/1.1"))
	if _, err := io.WriteString(web, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(web); len(b) > 0 || isTimeout(err) {
		t.Errorf("HTTP where there is none: %q, %v", b, err)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Where TLS is a must, clear text is told so in its own protocol.
func TestClearTextIsRefused(t *testing.T) {
	address, arrivals, secure, client := startSecured(t, func(c *TLSConfig) { c.Only = true }, nil)
	web := dial(t, address)
	send(t, web, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if b, err := io.ReadAll(web); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 400 ")) || !bytes.Contains(b, []byte("use https")) {
		t.Errorf("HTTP/1.1: %q, %v", b, err)
	}
	h2 := dial(t, address)
	send(t, h2, xhttp2.ClientPreface)
	fr := xhttp2.NewFramer(h2, h2)
	if err := errors.Join(fr.WriteSettings(), fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true})); err != nil {
		t.Fatal(err)
	}
	var answered bool
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatalf("HTTP/2: %v", err)
		}
		if h, ok := f.(*xhttp2.HeadersFrame); ok {
			answered = h.StreamID == 1 && h.StreamEnded() && bytes.Contains(h.HeaderBlockFragment(), refusalHeaders())
		}
		if goAway, ok := f.(*xhttp2.GoAwayFrame); ok {
			if !answered || goAway.ErrCode != xhttp2.ErrCodeInadequateSecurity || string(goAway.DebugData()) != refusal {
				t.Errorf("HTTP/2: got %v, answered %v", goAway, answered)
			}
			break
		}
	}
	silent := dial(t, address)
	send(t, silent, xhttp2.ClientPreface) // and no request
	if b, err := io.ReadAll(silent); isTimeout(err) {
		t.Errorf("HTTP/2 without a request: %q, %v", b, err)
	}
	tc := tls.Client(dial(t, address), offering(client, "h2"))
	if _, err := io.WriteString(tc, http2Start+"end"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, arrivals); got.backend != "GRPC" {
		t.Errorf("got %+v", got)
	}
	counted(t, secure, [3]uint64{1, 0, 3})
}

// helloOf returns the first message of a handshake.
func helloOf(t *testing.T, client *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, client).Handshake() // ends with the pipe
	}()
	hello := make([]byte, 16<<10)
	n, err := ours.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = ours.Close(), theirs.Close()
	return hello[:n]
}

// Broken handshakes end within the time, and nobody else waits for them.
func TestBrokenHandshakes(t *testing.T) {
	address, arrivals, secure, client := startSecured(t, nil, func(c *Config, _ *Backends) { c.Timeout = time.Second })
	hello := helloOf(t, client)
	stalled := map[string]string{
		"one byte":     "\x16",
		"half a hello": string(hello[:len(hello)/2]),
		"a hello":      string(hello), // and nothing after the server's
		"long record":  "\x16\x03\x01\x3f\xff" + strings.Repeat("x", 1000),
	}
	garbage := map[string]string{
		"no version":  "\x16" + strings.Repeat("\xff", 100),
		"not a hello": "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
		"empty hello": "\x16\x03\x01\x00\x04\x01\x00\x00\x00",
	}
	conns := map[string]net.Conn{}
	for _, set := range []map[string]string{stalled, garbage} {
		for name, said := range set {
			conns[name] = dial(t, address)
			send(t, conns[name], said)
		}
	}
	slow := dial(t, address)
	go func() { // a byte now and then does not win time
		for _, b := range hello {
			if _, err := slow.Write([]byte{b}); err != nil {
				return
			}
			<-time.After(50 * time.Millisecond)
		}
	}()
	send(t, dial(t, address), "GET / HTTP/1.1\r\nend")
	if got := next(t, arrivals); got.backend != "HTTP" {
		t.Errorf("got %+v", got)
	}
	tc := tls.Client(dial(t, address), offering(client, "http/1.1"))
	if _, err := io.WriteString(tc, "GET / HTTP/1.1\r\nend"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, arrivals); got.backend != "HTTP" {
		t.Errorf("got %+v", got)
	}
	conns["a slow hello"] = slow
	for name, nc := range conns {
		if _, err := io.Copy(io.Discard, nc); isTimeout(err) { // alerts may come before the end
			t.Errorf("%s: the connection stays", name)
		}
	}
	counted(t, secure, [3]uint64{1, uint64(len(conns)), 1})
}

// When all turns are taken, a handshake waits, and clear text does not.
func TestHandshakesAreBounded(t *testing.T) {
	address, arrivals, secure, client := startSecured(t, func(c *TLSConfig) { c.MaxHandshakes = 1 }, nil)
	holder := dial(t, address)
	send(t, holder, "\x16")
	for deadline := time.Now().Add(patience); len(secure.turns) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the handshake did not begin")
		}
		<-time.After(time.Millisecond)
	}
	waiting := dial(t, address)
	tc := tls.Client(waiting, offering(client, "http/1.1"))
	shaken := make(chan error, 1)
	go func() { shaken <- tc.HandshakeContext(t.Context()) }()
	send(t, dial(t, address), "GET / HTTP/1.1\r\nend")
	if got := next(t, arrivals); got.backend != "HTTP" {
		t.Errorf("got %+v", got)
	}
	select {
	case err := <-shaken:
		t.Errorf("the second handshake did not wait: %v", err)
	default:
	}
	_ = holder.Close()
	if err := <-shaken; err != nil {
		t.Errorf("the second handshake: %v", err)
	}
}

func TestHandshakeWaitsNotForEver(t *testing.T) {
	address, _, secure, client := startSecured(t, func(c *TLSConfig) { c.MaxHandshakes = 1 }, func(c *Config, _ *Backends) { c.Timeout = 100 * time.Millisecond })
	secure.turns <- struct{}{}
	nc := dial(t, address)
	if err := tls.Client(nc, client).HandshakeContext(t.Context()); err == nil || isTimeout(err) {
		t.Errorf("got %v, want the end", err)
	}
	counted(t, secure, [3]uint64{0, 1, 0})
}

func TestProxyHeaderBeforeTLS(t *testing.T) {
	address, arrivals, _, client := startSecured(t, func(c *TLSConfig) { c.Only = true }, func(c *Config, _ *Backends) {
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	for _, tt := range []struct{ header, peer string }{
		{"PROXY TCP4 192.0.2.7 192.0.2.1 4711 8848\r\n", "192.0.2.7:4711"},
		{"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x22\x90", "192.0.2.7:4711"},
		{"", ""},
	} {
		nc := dial(t, address)
		send(t, nc, tt.header)
		tc := tls.Client(nc, offering(client, "h2"))
		if _, err := io.WriteString(tc, http2Start+"end"); err != nil {
			t.Fatal(err)
		}
		want := tt.peer
		if want == "" {
			want = nc.LocalAddr().String()
		}
		if got := next(t, arrivals); got.peer != want || got.backend != "GRPC" {
			t.Errorf("%q: got %+v, want %s", tt.header, got, want)
		}
	}
	plain := dial(t, address)
	send(t, plain, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 8848\r\nGET / HTTP/1.1\r\n\r\n")
	if b, _ := io.ReadAll(plain); !bytes.Contains(b, []byte("use https")) {
		t.Errorf("clear text behind a proxy: %q", b)
	}
}

// The settings of each handshake are those of the moment, with the port's
// protocols.
func TestSettingsOfTheMoment(t *testing.T) {
	authority := certstest.NewAuthority(t)
	serial := int64(0)
	address, arrivals, _, _ := startSecured(t, func(c *TLSConfig) {
		c.Settings = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			serial++
			return &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, serial, time.Now().Add(time.Hour)).Certificate(t)}}, nil
		}}
	}, nil)
	for want := int64(1); want < 4; want++ {
		tc := tls.Client(dial(t, address), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost", NextProtos: []string{"h2"}})
		if _, err := io.WriteString(tc, http2Start+"end"); err != nil {
			t.Fatal(err)
		}
		next(t, arrivals)
		state := tc.ConnectionState()
		if got := state.PeerCertificates[0].SerialNumber.Int64(); got != want || state.NegotiatedProtocol != "h2" {
			t.Errorf("certificate %d over %q, want %d over h2", got, state.NegotiatedProtocol, want)
		}
	}
}
