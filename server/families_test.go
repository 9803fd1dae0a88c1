package server_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMetricFamilies holds the list of all figures of a server to a file: one that
// changes its name or kind breaks dashboards and alerts without a word. Those of
// the Go runtime and the process are the metrics client's.
func TestMetricFamilies(t *testing.T) {
	t.Parallel()
	c := newCaller(t, servertest.New(t))
	if err := c.register("orders", 8080, true); err != nil {
		t.Fatal(err)
	}
	status, text, err := c.do("GET", "/metrics", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	var families []string
	for line := range strings.Lines(text) {
		family, ok := strings.CutPrefix(line, "# TYPE ")
		if ok && !strings.HasPrefix(family, "go_") && !strings.HasPrefix(family, "process_") {
			families = append(families, family)
		}
		if strings.HasPrefix(line, "nacos_monitor{") {
			series, _, _ := strings.Cut(line, "} ")
			families = append(families, series+"}\n")
		}
	}
	slices.Sort(families)
	got := strings.Join(families, "")
	path := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s (-update writes it):\n%s", got, path, want)
	}
}
