package udppush

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// nowhere is a socket that swallows packets and hears nothing.
type nowhere struct{ *wire }

func (nowhere) WriteToUDPAddrPort(b []byte, _ netip.AddrPort) (int, error) { return len(b), nil }

// BenchmarkPush1000 is what a push to 1,000 subscribers costs the pusher: one
// encoding, one compression, 1,000 deliveries in the outbox.
func BenchmarkPush1000(b *testing.B) {
	r := newRig(b, DefaultConfig())
	for port := range 10 {
		r.register("svc", port+1, 1, "")
	}
	var subs []*registry.Subscriber
	for n := range 1000 {
		subs = append(subs, r.subscribe("svc", endpoint(n), javaAgent, ""))
	}
	view := r.store.View(serviceKey("svc"))
	r.clock.start = r.clock.start.Add(-time.Minute) // the look-ups were long ago
	r.sender.parts.Clock = r.clock
	batch := make([]delivery, 0, 1000)
	b.ReportAllocs()
	for b.Loop() {
		r.sender.Push(view, serviceKey("svc"), subs, registry.Instant{})
		batch, _ = r.sender.outbox.take(batch[:0], 1000, 1<<30)
	}
	if len(batch) != 1000 {
		b.Fatalf("%d deliveries, want 1000", len(batch))
	}
}

// BenchmarkSend is what one packet costs the sender, without the system call:
// to remember it, and to take its acknowledgement. Recorded is with the history in
// memory, each packet a revision of its own.
func BenchmarkSend(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		name := "plain"
		if recorded {
			name = "recorded"
		}
		b.Run(name, func(b *testing.B) { benchmarkSend(b, recorded) })
	}
}

func benchmarkSend(b *testing.B, recorded bool) {
	r := newRig(b, DefaultConfig())
	r.sender.conn = nowhere{newWire()}
	if recorded {
		history, err := ledger.New(ledger.DefaultConfig(""), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := history.Open(0); err != nil {
			b.Fatal(err)
		}
		r.sender.parts.History = history
	}
	sub := r.subscribe("svc", endpoint(1), javaAgent, "")
	p := &packet{bytes: make([]byte, 600)}
	d := delivery{sub: sub, packet: p, changed: r.clock.Now()}
	b.ReportAllocs()
	for b.Loop() {
		p.number++
		if recorded {
			d.revision++
		}
		r.sender.send(d)
		r.sender.heard([]byte(stringAck(p.number)), endpoint(1))
	}
	if r.sender.Unacked() != 0 {
		b.Fatalf("%d packets wait", r.sender.Unacked())
	}
}

// BenchmarkChangeToPacket is the time from a change to its packet at a client of
// this machine, when nothing else goes on. The median and the worst are reported
// in microseconds.
func BenchmarkChangeToPacket(b *testing.B) {
	c := newClient(b, "127.0.0.1")
	r, stop := bound(b, DefaultConfig())
	defer stop()
	// Nobody renews his subscription here.
	r.apply(&registry.SetSwitch{Meta: r.meta(), Entry: "pushCacheMillis", Value: "600000"})
	r.subscribe("svc", c.addr(), javaAgent, "")
	quiet := time.NewTicker(30 * time.Millisecond)
	defer quiet.Stop()
	var took []time.Duration
	for n := 1; b.Loop(); n++ {
		<-quiet.C
		start := time.Now()
		r.register("svc", 1, float64(n%1000+1), "")
		p := c.next()
		took = append(took, time.Since(start))
		c.send(p.from, stringAck(p.LastRefTime))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "µs-worst")
}

// BenchmarkFanOut is the time from a change to the last of 1,000 acknowledgements,
// of clients on this machine.
func BenchmarkFanOut(b *testing.B) {
	const sockets, services = 20, 50 // each socket has fifty subscriptions
	r, stop := bound(b, DefaultConfig())
	defer stop()
	// Nobody renews his subscription here.
	r.apply(&registry.SetSwitch{Meta: r.meta(), Entry: "pushCacheMillis", Value: "600000"})
	for range sockets {
		c := newClient(b, "127.0.0.1")
		for n := range services {
			r.subscribe("svc", c.addr(), javaAgent, "c"+name(n))
		}
		go func() {
			for {
				p, err := c.read(time.Minute)
				if err != nil {
					return // closed at the end
				}
				_, _ = c.conn.WriteToUDPAddrPort([]byte(stringAck(p.LastRefTime)), p.from)
			}
		}()
	}
	quiet := time.NewTicker(300 * time.Millisecond)
	defer quiet.Stop()
	var took []time.Duration
	for n := 1; b.Loop(); n++ {
		<-quiet.C
		start := time.Now()
		r.register("svc", 1, float64(n%1000+1), "")
		eventually(b, "everybody acknowledges", func() bool { return r.counts.outcome(Acked) == n*sockets*services })
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
}
