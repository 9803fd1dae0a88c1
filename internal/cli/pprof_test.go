package cli

import (
	"errors"
	"net/http"
	"strings"
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
	_, _, err := startPprof("0.0.0.0:0")
	if misuse := (*usageError)(nil); !errors.As(err, &misuse) || !strings.Contains(err.Error(), "pprof-listen") {
		t.Errorf("got %v, want a refusal that names the setting", err)
	}
}
