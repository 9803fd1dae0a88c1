package push

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkEmit is what a change costs whoever makes it, of one service after
// another, without subscribers and with one each.
func BenchmarkEmit(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(map[bool]string{false: "unwatched", true: "watched"}[watched], func(b *testing.B) {
			h := newHouse(b, DefaultConfig())
			h.pusher.Deliver(registry.ProtocolUDP, senderFunc(func() {}))
			defer h.run()()
			events := make([]registry.Event, 10_000)
			for i := range events {
				events[i] = registry.Event{Kind: registry.InstanceUpdated, Service: service1(i), Revision: 1, At: h.clock.Now()}
				if watched {
					h.subscribe(service1(i), addr(0), registry.ProtocolUDP)
				} else {
					h.subscribe(service1(i+len(events)), addr(0), registry.ProtocolUDP)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				h.pusher.Emit(&events[i])
				if i++; i == len(events) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkPush is one change of a service with a subscriber, from Emit to the
// sender, when the pusher has to be woken.
func BenchmarkPush(b *testing.B) {
	cfg := Config{MinWindow: time.Nanosecond, MaxWindow: time.Nanosecond}
	h := newHouse(b, cfg)
	got := make(chan struct{}, 1)
	h.pusher.Deliver(registry.ProtocolUDP, senderFunc(func() { got <- struct{}{} }))
	h.subscribe(service1(0), addr(0), registry.ProtocolUDP)
	h.register(service1(0), 1, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.pusher.Run(ctx) }()
	<-got
	e := registry.Event{Kind: registry.InstanceUpdated, Service: service1(0), Revision: 1}
	b.ReportAllocs()
	for b.Loop() {
		h.pusher.Emit(&e)
		<-got
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

type senderFunc func()

func (f senderFunc) Push(*registry.View, registry.ServiceKey, []*registry.Subscriber, registry.Instant) time.Duration {
	f()
	return 0
}
