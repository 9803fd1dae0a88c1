package main

import (
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		list []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5},
	} {
		if got := median(tt.list); got != tt.want {
			t.Errorf("median of %v: got %v, want %v", tt.list, got, tt.want)
		}
	}
}

// A soak compares the worst second with the usual one, and memory at its ends.
func TestSoakRow(t *testing.T) {
	r := &report.Result{Done: 9000, Missed: 1, Config: workload.Config{Protocol: target.GRPC, Rate: 600}}
	for n := range 150 {
		s := report.Sample{Seconds: 1, P99: 2000, Resident: int64(20+n/60) << 20}
		switch n {
		case 70:
			s.P99, s.Failed = 7000, 3
		case 71:
			s.P99 = 0 // nothing ended
		}
		r.Samples = append(r.Samples, s)
	}
	want := "grpc 1,000/s 600/s 9,000 1 2.00 ms 7.00 ms 3.5 20.0 MiB 22.0 MiB"
	if got := strings.Join(soakRow(r, 1000, secondsOf(r)), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	lines := minuteLines(r)
	if want := "  minute 2: p99 of the median second 2.00 ms, of the worst 7.00 ms, memory 21.0 MiB, 3 errors"; len(lines) != 4 || lines[2] != want {
		t.Errorf("got %q", lines)
	}
}

// A peer whose process is not known cannot be pinned or measured.
func TestPeerWithoutProcess(t *testing.T) {
	if p, err := newPeer("x=127.0.0.1:1"); err == nil {
		t.Errorf("got process %d", p.pid)
	}
}

func TestUsualParts(t *testing.T) {
	if list := usualParts(); strings.Contains(list, "soak") || !strings.Contains(list, "requests") {
		t.Errorf("got %s", list)
	}
}

func TestReplaceBetween(t *testing.T) {
	const page = "a\n<!-- e2e x -->\nold\n<!-- e2e x end -->\nb\n"
	got, err := replaceBetween([]byte(page), "x", []byte("new\n"))
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := replaceBetween([]byte(page), "y", nil); err == nil {
		t.Error("markers that are not there are no error")
	}
}

func TestFunction(t *testing.T) {
	name, share, ok := function("     0.22s  0.59% 52.79%      5.91s 15.77%  internal/poll.(*FD).RawRead")
	if name != "internal/poll.(*FD).RawRead" || share < 0.157 || share > 0.158 || !ok {
		t.Errorf("got %q %v %t", name, share, ok)
	}
	if _, _, ok := function("Showing nodes accounting for 30.88s, 82.41% of 37.47s total"); ok {
		t.Error("a line of the head counts as a function")
	}
}
