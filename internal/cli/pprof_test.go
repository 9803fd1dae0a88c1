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
	resp, err := http.Get("http://" + addr.String() + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + addr.String() + "/debug/pprof/"); err == nil {
		t.Error("it answers after it was stopped")
	}
}

func TestPprofStaysOnLoopback(t *testing.T) {
	t.Parallel()
	for address, allowed := range map[string]bool{"": true, "127.0.0.1:0": true, "[::1]:6060": true, "0.0.0.0:0": false, ":6060": false} {
		if err := checkPprof(address); (err == nil) != allowed {
			t.Errorf("%q: got %v", address, err)
		}
	}
}
