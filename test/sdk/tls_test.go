package sdk

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestTLS registers, watches and deregisters over TLS, by the entry of the server and by
// the option, and by either protocol.
func TestTLS(t *testing.T) {
	authority, address := secureServer(t)
	trust := rollcall.WithTLS(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
	for _, entry := range []string{address, "https://" + address} {
		protocols(t, func(t *testing.T, p rollcall.Protocol) {
			c := dial(t, append(onePort(p, entry), trust)...)
			s := rollcall.Service{Name: strings.NewReplacer("/", ".", "#", "-").Replace(t.Name())}
			w, err := c.Watch(within(t), s)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Register(within(t), s, rollcall.NewInstance("10.0.0.7", 8080))
			if err != nil {
				t.Fatal(err)
			}
			see(t, w, "the instance", count(1))
			if err := r.Deregister(within(t)); err != nil {
				t.Error(err)
			}
			see(t, w, "nothing", count(0))
		})
	}
}

// TestTLSFaults: who cannot be trusted is not spoken to, and the error says who and why.
func TestTLSFaults(t *testing.T) {
	authority, address := secureServer(t)
	faults := map[string]struct {
		tls  *tls.Config
		want string
	}{
		"another authority": {&tls.Config{RootCAs: certstest.NewAuthority(t).Pool(), ServerName: "localhost"}, "certificate signed by unknown authority"},
		"another name":      {&tls.Config{RootCAs: authority.Pool(), ServerName: "registry.example.com"}, "not registry.example.com"},
		"clear text":        {nil, "use https"},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(t *testing.T, p rollcall.Protocol) {
				options := onePort(p, address)
				if fault.tls != nil {
					options = append(options, rollcall.WithTLS(fault.tls))
				}
				c := dial(t, options...)
				checkFault(t, c, address, fault.want)
				if st := c.Status(); st.State != rollcall.Connecting || st.LastError == nil || !strings.Contains(st.LastError.Error(), fault.want) {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// checkFault checks what a registration fails with.
func checkFault(t *testing.T, c *rollcall.Client, address, want string) {
	t.Helper()
	await(t, c, "a first try", func(st rollcall.Status) bool { return st.LastError != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080))
	if err == nil {
		t.Fatal("registered")
	}
	if !errors.Is(err, rollcall.ErrNotConnected) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v\nwant one that names %s and says %q", err, address, want)
	}
}

// secureServer starts a server that speaks TLS alone.
func secureServer(t *testing.T) (authority *certstest.Authority, address string) {
	t.Helper()
	authority = certstest.NewAuthority(t)
	cert, key := authority.Issue(t, 1, time.Now().Add(time.Hour)).Write(t, t.TempDir())
	return authority, servertest.New(t, func(c *server.Config) {
		c.TLS.Files.Cert, c.TLS.Files.Key, c.TLS.Mode = cert, key, "only"
	}).Addr()
}
