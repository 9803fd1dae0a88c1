package ops_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// A page of another site reads nothing of the operator API, and can neither have
// it write nor hand out a backup.
func TestPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register("serviceName=kept", "ip=10.0.0.1", "port=1", "ephemeral=false")
	before := r.exported()
	for _, tt := range []struct {
		who     string
		headers []string
		refused bool
	}{
		{"a program", nil, false},
		{"a page of ours", []string{"Origin", r.URL(), "Sec-Fetch-Site", "same-origin"}, false},
		{"a page of ours in an old browser", []string{"Origin", strings.ToUpper(r.URL())}, false},
		{"a user", []string{"Sec-Fetch-Site", "none"}, false},
		{"another site", []string{"Origin", "http://a.example"}, true},
		{"another port", []string{"Origin", "http://127.0.0.1:1"}, true},
		{"no site", []string{"Origin", "null"}, true},
		{"no URL", []string{"Origin", "::"}, true},
		{"a link", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"a sister site", []string{"Origin", r.URL(), "Sec-Fetch-Site", "same-site"}, true},
	} {
		for _, call := range []struct {
			method, target string
			status         int // when it is not refused
			open           bool
		}{
			{"GET", "/rollcall/v1/services", 200, true},
			{"GET", "/rollcall/v1/backup", 200, false},
			{"HEAD", "/rollcall/v1/backup", 200, false},
			{"GET", "/nacos/rollcall/v1/export/", 200, false},
			{"POST", "/rollcall/v1/restore", 400, false}, // the body is empty
		} {
			want := call.status
			if tt.refused && !call.open {
				want = 403
			}
			if status, body := r.do(call.method, call.target, http.NoBody, tt.headers...); status != want {
				t.Errorf("%s: %s %s: %d %s, want %d", tt.who, call.method, call.target, status, body, want)
			}
		}
	}
	if got := r.exported(); got != before {
		t.Error("a refused request changed something")
	}
}

func TestNoCORS(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	for _, tt := range []struct {
		method, target string
		allowed        bool
	}{
		{"GET", "/rollcall/v1/services", false},
		{"GET", "/rollcall/v1/backup", false},
		{"OPTIONS", "/rollcall/v1/restore", false},
		{"GET", "/rollcall/v1/nothing", false},
		{"GET", "/nacos/v1/ns/service/list?pageNo=1&pageSize=1", true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL()+tt.target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "http://a.example")
		req.Header.Set("Access-Control-Request-Method", "POST")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		allowed := false
		for name := range resp.Header {
			allowed = allowed || strings.HasPrefix(name, "Access-Control-")
		}
		if allowed != tt.allowed {
			t.Errorf("%s %s: CORS %v, want %v: %v", tt.method, tt.target, allowed, tt.allowed, resp.Header)
		}
	}
}
