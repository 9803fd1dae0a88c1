package target

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
	rollcall "github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// guard asks for a token in front of a server, as Nacos does when its authentication
// is on.
type guard struct {
	t    *testing.T
	life int // of a token, in seconds

	mu     sync.Mutex
	issued int
}

// valid reports whether a token is the latest, or the one before, whose time is not over
// when the next is given.
func (g *guard) valid(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return token == fmt.Sprintf("token+%d", g.issued) || token == fmt.Sprintf("token+%d", g.issued-1)
}

func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.PostFormValue("username") != "bench" || r.PostFormValue("password") != "secret" {
		http.Error(w, "unknown user!", http.StatusForbidden)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.issued++
	_, _ = fmt.Fprintf(w, `{"accessToken":"token+%d","tokenTtl":%d,"globalAdmin":true,"username":"bench"}`, g.issued, g.life)
}

// http starts the guard of the HTTP API.
func (g *guard) http(behind string) string {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/nacos/v1/auth/login":
			g.login(w, r)
		case !g.valid(r.URL.Query().Get("accessToken")):
			http.Error(w, "unknown user!", http.StatusForbidden)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	g.t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// grpc starts the guard of the gRPC API, behind which is nothing.
func (g *guard) grpc() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	calls := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(g.call))
	go func() { _ = calls.Serve(ln) }()
	g.t.Cleanup(calls.Stop)
	return ln.Addr().String()
}

func (g *guard) call(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	for {
		var request []byte
		if err := s.RecvMsg(&request); err != nil {
			return err
		}
		if !strings.HasSuffix(method, grpcv2.UnaryMethod) {
			continue
		}
		var p grpcv2.Payload
		if err := p.Unmarshal(request); err != nil {
			return err
		}
		token, _ := p.Header("accessToken")
		answer := `{"resultCode":200,"errorCode":0,"serviceInfo":{"hosts":[]}}`
		if !g.valid(token) && p.Type != grpcv2.ServerCheck && p.Type != grpcv2.HealthCheck {
			answer = `{"resultCode":500,"errorCode":403,"message":"user not found!"}`
		}
		return s.SendMsg(grpcv2.AppendPayload(nil, &grpcv2.Head{Type: "Response"}, []byte(answer)))
	}
}

// rawCodec moves messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Sessions say who they are, with a token that is renewed before it ends; without, or
// with a token that is of no use any more, they are denied and say what to do.
func TestLogin(t *testing.T) {
	t.Parallel()
	g := &guard{t: t, life: 1}
	web, calls := g.http(servertest.New(t).Addr()), g.grpc()
	f := &fleet.Fleet{Name: "login", Group: "DEFAULT_GROUP", Services: 1, Size: 1, Owners: 1}
	known, err := New("known", web, calls, WithLogin("bench", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := New("unknown", web, calls)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := known.LogIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	sessions := map[Protocol]Session{}
	for _, p := range []Protocol{HTTP, GRPC} {
		if sessions[p], err = known.Dial(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		defer sessions[p].Close()
		nobody, err := unknown.Dial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		defer nobody.Close()
		if err := nobody.Register(fleet.Instance{Service: f.Service(0)}); !errors.Is(err, errDenied) || !strings.Contains(err.Error(), "password-file") {
			t.Errorf("%s: nobody: got %v", p, err)
		}
	}
	for ended := time.Now().Add(30 * time.Second); !g.valid("token+4"); { // some renewals later
		for p, s := range sessions {
			if err := s.Register(fleet.Instance{Service: f.Service(0)}); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
		if time.Now().After(ended) {
			t.Fatal("the token is not renewed")
		}
	}
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	g := &guard{t: t, life: 1}
	web := g.http("127.0.0.1:1")
	v3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/nacos/v3/auth/user/login" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"code":0,"data":{"accessToken":"x","tokenTtl":18000}}`)
	}))
	defer v3.Close()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
	defer empty.Close()
	for _, tt := range []struct{ name, address, password, want string }{
		{"password", web, "guess", "log in to x as bench: the server denied it with 403"},
		{"envelope", v3.Listener.Addr().String(), "", ""},
		{"no token", empty.Listener.Addr().String(), "", "gave no token"},
		{"nobody", "127.0.0.1:1", "", "nothing listens there"},
	} {
		s, err := New("x", tt.address, "", WithLogin("bench", tt.password))
		if err != nil {
			t.Fatal(err)
		}
		stop, err := s.LogIn(t.Context())
		if err == nil {
			stop()
		}
		if err != nil && strings.Count(err.Error(), ";") > 1 {
			t.Errorf("%s: the advice comes twice: %v", tt.name, err)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestRenewAfter(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{
		5 * time.Hour: 4*time.Hour + 30*time.Minute, time.Second: 900 * time.Millisecond, 0: 270 * time.Second,
	} {
		if got := renewAfter(life); got != want {
			t.Errorf("a token of %v is renewed after %v, want %v", life, got, want)
		}
	}
}

// Over TLS everything is as in clear text, subscribers included; what is wrong is
// said so that it can be mended.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority := certstest.NewAuthority(t)
	certFile, keyFile := authority.Issue(t, 1, time.Now().Add(time.Hour)).Write(t, t.TempDir())
	server := servertest.New(t, func(c *rollcall.Config) { c.TLS.Files.Cert, c.TLS.Files.Key = certFile, keyFile })
	trusted := &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}
	f := &fleet.Fleet{Name: "tls", Group: "DEFAULT_GROUP", Services: 2, Size: 3, Owners: 1}
	for i, p := range []Protocol{HTTP, GRPC} {
		s, err := New("x", server.Addr(), server.Addr(), WithTLS(trusted, trusted))
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.Dial(t.Context(), p)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		defer session.Close()
		if err := session.RegisterService(f.Service(i)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		if n, err := session.Count(f.Service(i)); n != f.Size || err != nil {
			t.Errorf("%s: got %d instances, %v", p, n, err)
		}
		h := told{make(chan Seen, 10), make(chan Seen, 10)}
		sub, err := s.NewSubscriber(t.Context(), p, h)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if err := sub.Subscribe(f.Service(i), session); err != nil || next(t, h.seen).Hosts != f.Size {
			t.Errorf("%s: subscribe: %v", p, err)
		}
	}
	plain := servertest.New(t)
	for _, tt := range []struct {
		name, address string
		config        *tls.Config
		want          string
	}{
		{"unknown authority", server.Addr(), &tls.Config{MinVersion: tls.VersionTLS12}, "ca-file"},
		{"another name", server.Addr(), &tls.Config{RootCAs: authority.Pool(), ServerName: "registry.test", MinVersion: tls.VersionTLS12}, "server-name"},
		{"clear text", plain.Addr(), trusted, ""},
	} {
		for _, p := range []Protocol{HTTP, GRPC} {
			s, err := New("x", tt.address, tt.address, WithTLS(tt.config, tt.config))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.Dial(t.Context(), p); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s via %s: got %v, want %q", tt.name, p, err, tt.want)
			}
		}
	}
	// A server that speaks TLS but not HTTP/2 has no gRPC.
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	s, err := New("x", web.Listener.Addr().String(), web.Listener.Addr().String(), WithTLS(nil, &tls.Config{InsecureSkipVerify: true})) //nolint:gosec // it is the test's own
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dial(t.Context(), GRPC); err == nil || !strings.Contains(err.Error(), "(ALPN h2)") {
		t.Errorf("no HTTP/2: got %v", err)
	}
}
