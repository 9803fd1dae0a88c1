package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// TestOthersKeepIt: what another client keeps alive, too, is not said to be gone.
func TestOthersKeepIt(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	connect(t, server, "Nacos-Java-Client:v2.4.3")
	l := start(t, "register", "orders", "10.0.0.5:8080", "--beat", "-s", server.URL())
	l.waitFor("keeping it alive")
	got := l.interrupt()
	if got.code != exitOK || strings.Contains(got.stdout, "deregistered") || !strings.Contains(got.stdout, "left 10.0.0.5:8080 in orders\n") ||
		!strings.Contains(got.stderr, "is still in orders: another client keeps it alive") {
		t.Errorf("got %+v", got)
	}
}

// TestMovesAreTold: over HTTP, too, where a client goes on with another server as if
// nothing had happened.
func TestMovesAreTold(t *testing.T) {
	t.Parallel()
	up := servertest.New(t)
	target, err := url.Parse(up.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	for name, command := range map[string][]string{
		"watch":    {"watch", "orders"},
		"register": {"register", "stock", "10.0.0.7:80", "--beat", "--metadata", "preserved.heart.beat.interval=50"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var away [2]atomic.Bool
			var addresses [2]string
			for i := range away {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if away[i].Load() {
						panic(http.ErrAbortHandler)
					}
					proxy.ServeHTTP(w, r)
				}))
				t.Cleanup(s.Close)
				addresses[i] = s.URL
			}
			away[1].Store(true)
			l := start(t, append(command, "--via", "http", "-s", strings.Join(addresses[:], ","))...)
			l.waitFor(command[1])
			away[1].Store(false)
			away[0].Store(true)
			l.waitFor("connected to " + strings.TrimPrefix(addresses[1], "http://") + " over http")
			if got := l.interrupt(); got.code != exitOK {
				t.Errorf("got %+v", got)
			}
		})
	}
}
