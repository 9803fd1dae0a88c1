package metrics

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// filled returns figures of which each has been counted at least once.
func filled() *Metrics {
	m := New()
	m.Request("/v1/ns/instance/list", 200, 70*time.Microsecond)
	m.Request("/v1/ns/instance/list", 200, 2*time.Millisecond)
	m.Request("/v1/ns/instance/list", 400, 40*time.Microsecond)
	m.Request("/v1/ns/instance/beat", 200, 30*time.Microsecond)
	m.Event("registered", "request")
	m.Event("registered", "request")
	m.Event("unhealthy", "beat timeout")
	m.PushSent("udp", 3*time.Millisecond)
	m.PushSent("udp", 0) // tells of no change
	m.Push("udp", "acked")
	m.PushAcked("udp", 8*time.Millisecond)
	m.PushAcked("udp", 0)
	m.Push("udp", "failed")
	m.DurableWrite(4 * time.Millisecond)
	m.Merged(3, 20*time.Millisecond, false)
	m.Merged(1, 0, true)
	m.Ignored("no acknowledgement")
	m.Gauge("instances", "Instances.", func() float64 { return 2 }, Label{"kind", "ephemeral"})
	m.Gauge("instances", "Instances.", func() float64 { return 1 }, Label{"kind", "persistent"})
	m.Counter("pauses_total", "Pauses.", func() float64 { return 7 })
	m.Gauges("clients", "Clients.", []string{"sdk", "version"}, func() []Sample {
		return []Sample{{[]string{"java", "2.5"}, 3}, {[]string{"go", "2.3"}, 1}}
	})
	m.Legacy("serviceCount", func() float64 { return 5 })
	return m
}

// TestText holds names, labels, help and values to a file, since dashboards and
// alerts are made of them. Those of the Go runtime and the process are the
// metrics client's.
func TestText(t *testing.T) {
	var text bytes.Buffer
	contentType, err := filled().Write(&text)
	if err != nil {
		t.Fatal(err)
	}
	if want := "text/plain; version=0.0.4; charset=utf-8"; contentType != want {
		t.Errorf("content type %q, want %q", contentType, want)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(text.String(), "\n"), func(line string) bool {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
	})
	got := strings.Join(lines, "")
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

// TestRuntime: the figures of the Go runtime are there too, and on systems with
// /proc those of the process.
func TestRuntime(t *testing.T) {
	var text bytes.Buffer
	if _, err := New().Write(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\ngo_goroutines ") {
		t.Errorf("no go_goroutines in\n%s", &text)
	}
}

// TestNothingIsShared: two servers of a process count for themselves.
func TestNothingIsShared(t *testing.T) {
	filled()
	var text bytes.Buffer
	if _, err := New().Write(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "rollcall_requests_total{") {
		t.Errorf("new figures have the requests of others:\n%s", &text)
	}
}

// TestConcurrentUse counts from several goroutines while others read.
func TestConcurrentUse(t *testing.T) {
	const callers, each = 4, 100
	m := New()
	var counting sync.WaitGroup
	for range callers {
		counting.Go(func() {
			for range each {
				m.Request("/x", 200, time.Millisecond)
				m.Event("registered", "request")
			}
			if _, err := m.Write(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		})
	}
	counting.Wait()
	var text bytes.Buffer
	if _, err := m.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`rollcall_requests_total{code="200",route="/x"} 400`,
		`rollcall_request_duration_seconds_count{route="/x"} 400`,
		`rollcall_events_total{cause="request",kind="registered"} 400`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("no line %s in\n%s", want, &text)
		}
	}
}

// BenchmarkRequest is on the path of every request.
func BenchmarkRequest(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for b.Loop() {
		m.Request("/v1/ns/instance/beat", 200, 30*time.Microsecond)
	}
}

// BenchmarkPush is what is counted of each push to a subscriber, from its sending to
// its acknowledgement.
func BenchmarkPush(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for b.Loop() {
		m.PushSent("grpc", 30*time.Microsecond)
		m.Push("grpc", "acked")
		m.PushAcked("grpc", 60*time.Microsecond)
	}
}
