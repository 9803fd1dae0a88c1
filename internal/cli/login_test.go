package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestTokenEnds: a command that lasts longer than its token logs in again.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	logins := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/login"):
			logins++
			fmt.Fprintf(w, `{"accessToken":"token-%d"}`, logins)
		case r.URL.Query().Get("accessToken") != "token-2":
			http.Error(w, "token expired!", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{servers: []*url.URL{u}, http: server.Client(), login: &login{user: "u", password: "p"}}
	for n, want := range []bool{false, true, true} { // the first call finds out
		body, err := c.do(t.Context(), http.MethodGet, operatorAPI+"/history", nil)
		if (err == nil) != want {
			t.Errorf("call %d: got %v", n+1, err)
		}
		if err == nil {
			_ = body.Close()
		}
	}
	if logins != 2 {
		t.Errorf("%d logins, want 2", logins)
	}
}
