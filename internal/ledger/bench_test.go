package ledger

import (
	"bytes"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkEmit writes to a disk at full speed, as the server does.
func BenchmarkEmit(b *testing.B) {
	b.Run("registration/memory only", func(b *testing.B) {
		h := newHouse(b, DefaultConfig(""), 0)
		e := registration(70_000)
		b.ReportAllocs()
		for b.Loop() {
			h.Emit(e)
		}
	})
	for _, bb := range []struct {
		name string
		e    *registry.Event
	}{{"registration", registration(70_000)}, {"removal", removal(70_000)}} {
		for _, parallel := range []bool{false, true} {
			name := bb.name + "/single"
			if parallel {
				name = bb.name + "/parallel"
			}
			b.Run(name, func(b *testing.B) {
				h := newHouse(b, DefaultConfig(b.TempDir()), 0).run(b)
				h.SetRecoveryFloor(1 << 60) // so that old segments go
				b.ReportAllocs()
				if parallel {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							h.Emit(bb.e)
						}
					})
				} else {
					for b.Loop() {
						h.Emit(bb.e)
					}
				}
				b.ReportMetric(float64(h.Stats().Lost), "lost")
			})
		}
	}
}

// filled is a directory with n registrations in segments of the default size.
func filled(b *testing.B, n int) Config {
	b.Helper()
	cfg := DefaultConfig(b.TempDir())
	cfg.BacklogBytes = maxBacklog
	h := newHouse(b, cfg, 0).run(b)
	h.emit(n)
	if err := h.stop(); err != nil {
		b.Fatal(err)
	}
	return DefaultConfig(cfg.Dir)
}

// BenchmarkQuery looks for one instance among 100,000 registrations.
func BenchmarkQuery(b *testing.B) {
	const records = 100_000
	h := newHouse(b, filled(b, records), 0)
	for _, bb := range []struct {
		name string
		f    Filter
		want int
	}{
		{"newest 100", Filter{}, 100},
		{"instance, all of it", Filter{Service: "orders-5000", IP: "10.0.195.80", Port: 8080}, 1},
		{"instance, newest record", Filter{Service: "orders-9990", IP: "10.1.134.62", Port: 8080, Limit: 1}, 1},
		{"kind that is rare", Filter{Kinds: []registry.EventKind{Stopped}}, 1},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := h.Query(b.Context(), bb.f)
				if err != nil || len(page.Records) != bb.want {
					b.Fatalf("%d records, %v, want %d", len(page.Records), err, bb.want)
				}
			}
		})
	}
}

// BenchmarkReplay reads 100,000 registrations.
func BenchmarkReplay(b *testing.B) {
	const records = 100_000
	h := newHouse(b, filled(b, records), 0)
	b.ReportAllocs()
	for b.Loop() {
		sum, err := h.Replay(b.Context(), 0, func(*Record) error { return nil })
		if err != nil || sum.Records < records {
			b.Fatalf("%+v, %v", sum, err)
		}
	}
}

// BenchmarkOpen opens a history whose newest segment is nearly full.
func BenchmarkOpen(b *testing.B) {
	cfg := DefaultConfig(b.TempDir())
	content := header(time.Now())
	for n := 1; len(content) < int(cfg.SegmentBytes); n++ {
		content = appendRecord(content, uint64(n), registration(n), 0)
	}
	put(b, cfg.Dir, 1, content)
	for b.Loop() {
		newHouse(b, cfg, 0)
	}
}

// BenchmarkLines is the work of a query on lines that it does not want.
func BenchmarkLines(b *testing.B) {
	var block []byte
	for n := 0; len(block) < blockBytes; n++ {
		block = appendRecord(block, uint64(n+1), registration(n), 0)
	}
	m := newMatcher(&Filter{Service: "none", IP: "10.9.9.9"})
	cutter := liner{backwards: true}
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		for line := range cutter.lines(block) {
			if h, ok := parseHead(line); !ok || !intact(line) || m.maybe(line, h) {
				b.Fatal(string(line))
			}
		}
	}
	b.ReportMetric(float64(bytes.Count(block, []byte{'\n'})), "lines/op")
}
