package cli

import (
	"net/http"
	"testing"
)

func TestPprof(t *testing.T) {
	t.Parallel()
	addr, stop, err := startPprof("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if code := statusOf(t, "http://"+addr.String()+"/debug/pprof/goroutine?debug=1"); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if code := statusOf(t, "http://"+addr.String()+"/debug/pprof/"); code != 0 {
		t.Errorf("it answers %d after it was stopped", code)
	}
}

// statusOf asks for url and returns the status of the answer, 0 for none.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestPprofStaysOnLoopback(t *testing.T) {
	t.Parallel()
	for address, allowed := range map[string]bool{"": true, "127.0.0.1:0": true, "[::1]:6060": true, "0.0.0.0:0": false, ":6060": false} {
		if err := checkPprof(address); (err == nil) != allowed {
			t.Errorf("%q: got %v", address, err)
		}
	}
}
