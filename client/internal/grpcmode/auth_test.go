package grpcmode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// provider gives out the tokens t1, t2, …, one a login, and fails if they are to fail.
func provider(logins *atomic.Int64, failure error) with {
	return func(c *Config) {
		source := func(context.Context) (auth.Credentials, error) {
			return auth.Credentials{Username: "u", Password: "p"}, nil
		}
		c.Auth = auth.New(source, func(context.Context, string, string) (string, time.Duration, error) {
			return fmt.Sprint("t", logins.Add(1)), time.Hour, failure
		})
	}
}

// A token that a server refuses is replaced, once, and the call repeated. The connection
// stays.
func TestTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		good string // the token that the server takes
		want wire.Kind
	}{
		"the first": {good: "t1"}, "the second": {good: "t2"}, "none": {good: "-", want: wire.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				server := w.serve(first, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
					return grpctest.Refuse(403, "token invalid!"), f.Type == grpcv2.InstanceType && f.Headers["accessToken"] != tt.good
				}})
				var logins atomic.Int64
				r := start(t, to(first), on(w), provider(&logins, nil))
				r.connected(t, 1)
				if logins.Load() != 0 {
					t.Error("logged in although nothing was asked for")
				}
				if _, err := r.Query(limited(t), service("orders")); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second) // credentials are not tried again at once
				err := r.Publish(limited(t), service("orders"), set(1))
				if wire.KindOf(err) != tt.want && err != nil || (err == nil) != (tt.want == wire.Unknown) {
					t.Errorf("got %v", err)
				}
				time.Sleep(10 * time.Second)
				_ = r.Publish(limited(t), service("orders"), set(1))
				if n := logins.Load(); n > 3 {
					t.Errorf("%d logins", n)
				}
				if len(r.told().causes) > 0 {
					t.Errorf("causes %v", r.told().causes)
				}
				for _, f := range server.Peers()[0].Asked() {
					if f.Type == grpcv2.InstanceType && f.Headers["accessToken"] == "" {
						t.Errorf("asked without a token: %+v", f)
					}
				}
			})
		})
	}
}

// Without a token nothing is asked, and the error is that of the login.
func TestLoginFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(first, grpctest.Script{})
		var logins atomic.Int64
		wrong := errors.New("wrong password")
		r := start(t, to(first), on(w), provider(&logins, wrong))
		r.connected(t, 1)
		err := r.Publish(limited(t), service("orders"), set(1))
		if wire.KindOf(err) != wire.Unauthorized || !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
	})
}

// Over TLS, by the configuration of the client or by the entry of the server, a server
// is verified.
func TestTLS(t *testing.T) {
	authority := certstest.NewAuthority(t)
	pair := authority.Issue(t, 1, time.Now().Add(time.Hour))
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(cert, pair.Cert, 0o600), os.WriteFile(key, pair.Key, 0o600)); err != nil {
		t.Fatal(err)
	}
	srv := servertest.New(t, func(c *server.Config) { c.TLS.Files.Cert, c.TLS.Files.Key = cert, key })
	r := start(t, to(srv.Addr()), func(c *Config) { c.TLS = &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12} })
	r.connected(t, 1)
	if _, err := r.Query(limited(t), service("orders")); err != nil {
		t.Error(err)
	}
	distrustful := start(t, to("https://"+srv.Addr()))
	distrustful.wait(t, "cause", func() bool { return len(distrustful.causes) > 0 })
	if err := distrustful.causes[0]; wire.KindOf(err) != wire.NotConnected {
		t.Errorf("got %v", err)
	}
}
