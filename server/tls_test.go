package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// secured is a server with a certificate.
type secured struct {
	*servertest.Server
	cfg       server.Config
	authority *certstest.Authority
	dir       string
}

func newSecured(t *testing.T, change func(*server.Config)) *secured {
	t.Helper()
	s := &secured{authority: certstest.NewAuthority(t), dir: t.TempDir()}
	s.Server = servertest.New(t, func(c *server.Config) {
		c.GRPCListen = "127.0.0.1:0"
		c.TLS.Files.Cert, c.TLS.Files.Key = s.issue(t, 1).Write(t, s.dir)
		if change != nil {
			change(c)
		}
		s.cfg = *c
	})
	return s
}

func (s *secured) issue(t *testing.T, serial int64) certstest.Pair {
	t.Helper()
	return s.authority.Issue(t, serial, time.Now().Add(time.Hour))
}

// trust returns the settings of a client that knows the authority.
func (s *secured) trust() *tls.Config {
	return &tls.Config{RootCAs: s.authority.Pool(), ServerName: "localhost"}
}

// web returns a client of a scheme, without connections of before.
func (s *secured) web(t *testing.T, scheme string) *caller {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.trust(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{scheme + "://" + s.Addr(), &http.Client{Transport: transport}}
}

// subscribe registers a connection as a naming client that subscribes to a service.
func subscribe(t *testing.T, c *grpctest.Client, service string) *grpctest.Stream {
	t.Helper()
	c.Call(t, "ServerCheckRequest", "{}")
	stream := c.Open(t)
	stream.Say(t, "ConnectionSetupRequest", `{"clientVersion":"Nacos-Java-Client:v2.5.1","labels":{"source":"sdk","module":"naming"},"abilityTable":{}}`)
	stream.Expect(t, "SetupAckRequest")
	answer := c.Call(t, "SubscribeServiceRequest", fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"DEFAULT_GROUP","subscribe":true,"clusters":""}`, service))
	if answer.Type != "SubscribeServiceResponse" {
		t.Fatalf("subscribe: %s %s", answer.Type, answer.Body)
	}
	return stream
}

// pushed waits for a push with an instance of a port.
func pushed(t *testing.T, stream *grpctest.Stream, port int) {
	t.Helper()
	for {
		if f := stream.Expect(t, "NotifySubscriberRequest"); strings.Contains(string(f.Body), fmt.Sprintf(`"port":%d`, port)) {
			return
		}
	}
}

// Clients in clear text and over TLS share the ports and the data.
func TestTLSBesideClearText(t *testing.T) {
	t.Parallel()
	s := newSecured(t, nil)
	extra := s.Addrs().GRPC.String()
	var streams []*grpctest.Stream
	for _, address := range []string{s.Addr(), extra} {
		streams = append(streams,
			subscribe(t, grpctest.Dial(t, address), "orders"),
			subscribe(t, grpctest.DialTLS(t, address, s.trust()), "orders"))
	}
	for port, scheme := range []string{"http", "https"} {
		port += 8080
		if err := s.web(t, scheme).register("orders", port, true); err != nil {
			t.Fatal(err)
		}
		for _, stream := range streams {
			pushed(t, stream, port)
		}
	}
	for _, scheme := range []string{"http", "https"} {
		if got := s.web(t, scheme).ports(t, "orders"); len(got) != 2 {
			t.Errorf("%s: the list has %v", scheme, got)
		}
	}
	_, figures, err := s.web(t, "https").do("GET", "/metrics", nil)
	for _, want := range []string{`rollcall_tls_handshakes_total{outcome="none"} `, "rollcall_tls_certificate_end_seconds "} {
		if err != nil || !strings.Contains(figures, want) {
			t.Errorf("no %q in the metrics (%v)", want, err)
		}
	}
}

func TestTLSOnly(t *testing.T) {
	t.Parallel()
	s := newSecured(t, func(c *server.Config) { c.TLS.Mode = "only" })
	if status, body, err := s.web(t, "http").do("GET", "/readyz", nil); status != 400 || !strings.Contains(body, "use https") {
		t.Errorf("http: %d %s, %v", status, body, err)
	}
	if status, body, err := s.web(t, "https").do("GET", "/readyz", nil); status != 200 {
		t.Errorf("https: %d %s, %v", status, body, err)
	}
	for _, address := range []string{s.Addr(), s.Addrs().GRPC.String()} {
		if _, err := grpctest.Dial(t, address).Try(grpctest.Message{}); err == nil || !strings.Contains(err.Error(), "use https") {
			t.Errorf("gRPC in clear text: %v, want the reason", err)
		}
		subscribe(t, grpctest.DialTLS(t, address, s.trust()), "orders")
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	s := newSecured(t, func(c *server.Config) {
		authority := certstest.NewAuthority(t)
		c.TLS.Files.ClientCA = certstest.WriteFile(t, filepath.Join(filepath.Dir(c.TLS.Files.Cert), "ca.pem"), authority.PEM())
	})
	if _, err := grpctest.DialTLS(t, s.Addr(), s.trust()).Try(grpctest.Message{}); err == nil {
		t.Error("a client without a certificate is served")
	}
	certstest.WriteFile(t, s.cfg.TLS.Files.ClientCA, s.authority.PEM())
	s.Reload(s.cfg)
	known := s.trust()
	known.Certificates = []tls.Certificate{s.issue(t, 9).Certificate(t)}
	subscribe(t, grpctest.DialTLS(t, s.Addr(), known), "orders")
	if status, body, err := s.web(t, "http").do("GET", "/readyz", nil); status != 400 {
		t.Errorf("http: %d %s, %v", status, body, err)
	}
}

// A new certificate is for new connections; those that are there stay.
func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	s := newSecured(t, nil)
	stream := subscribe(t, grpctest.DialTLS(t, s.Addr(), s.trust()), "orders")
	serial := func() int64 {
		t.Helper()
		resp, err := s.web(t, "https").client.Get("https://" + s.Addr() + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	s.issue(t, 2).Write(t, s.dir)
	s.Reload(s.cfg)
	if got := serial(); got != 2 {
		t.Errorf("certificate %d, want 2", got)
	}
	if err := os.WriteFile(s.cfg.TLS.Files.Cert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Reload(s.cfg)
	if got := serial(); got != 2 {
		t.Errorf("certificate %d after a faulty one, want 2", got)
	}
	if err := s.web(t, "http").register("orders", 8080, true); err != nil {
		t.Fatal(err)
	}
	pushed(t, stream, 8080)
}

// The limits hold within TLS, and their refusals can be read there.
func TestLimitsWithinTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t, func(c *server.Config) { c.HTTP.MaxConnsPerIP, c.GRPCConn.MaxConnsPerIP = 1, 1 })
	first, err := tls.Dial("tcp", s.Addr(), s.trust())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if _, err := io.WriteString(first, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if status, body, err := s.web(t, "https").do("GET", "/livez", nil); status != 429 || !strings.Contains(body, "from this address") {
		t.Errorf("a second HTTP connection: %d %s, %v", status, body, err)
	}
	grpctest.DialTLS(t, s.Addr(), s.trust()).Call(t, "ServerCheckRequest", "{}")
	if _, err := grpctest.DialTLS(t, s.Addr(), s.trust()).Try(grpctest.Message{}); err == nil || !strings.Contains(err.Error(), "from this address") {
		t.Errorf("a second gRPC connection: %v", err)
	}
}

// A PROXY header comes before the handshake and names the client of both
// protocols.
func TestProxyHeaderBeforeTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t, func(c *server.Config) {
		c.HTTP.ProxyProtocol, c.HTTP.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	// A balancer that puts the header before what its clients say.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go balance(client, s.Addr())
		}
	}()
	answer := grpctest.DialTLS(t, ln.Addr().String(), s.trust()).Call(t, "ServerCheckRequest", "{}")
	if id := fmt.Sprint(answer.Members(t)["connectionId"]); !strings.HasSuffix(id, "_192.0.2.7_4711") {
		t.Errorf("the connection is %s, want the client's address in it", id)
	}
}

func balance(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	if _, err := io.WriteString(upstream, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 8848\r\n"); err != nil {
		return
	}
	go func() { _, _ = io.Copy(upstream, client) }()
	_, _ = io.Copy(client, upstream)
}

func TestTLSSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := certstest.NewAuthority(t).Issue(t, 1, time.Now().Add(time.Hour)).Write(t, dir)
	for name, tt := range map[string]struct {
		change func(*server.TLSConfig)
		want   string
	}{
		"no key":                    {func(c *server.TLSConfig) { c.Files.Key = "" }, "tls.key: "},
		"only, without":             {func(c *server.TLSConfig) { c.Files.Cert, c.Files.Key, c.Mode = "", "", "only" }, "tls.mode: "},
		"clear text past client CA": {func(c *server.TLSConfig) { c.Files.ClientCA, c.Mode = certFile, "both" }, "tls.mode: "},
		"no handshakes":             {func(c *server.TLSConfig) { c.MaxHandshakes = 0 }, "tls.max-handshakes: "},
		"no file":                   {func(c *server.TLSConfig) { c.Files.Cert += ".no" }, "tls.cert: "},
		"in order":                  {func(*server.TLSConfig) {}, ""},
	} {
		cfg := server.DefaultConfig()
		cfg.DataDir = filepath.Join(dir, "data")
		cfg.TLS.Files.Cert, cfg.TLS.Files.Key = certFile, keyFile
		tt.change(&cfg.TLS)
		_, err := server.Check(cfg)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
