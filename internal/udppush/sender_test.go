package udppush

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// inMemory runs a test in fake time, with a socket in memory.
func inMemory(t *testing.T, test func(t *testing.T, r *rig, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig())
		w := newWire()
		r.sender.conn = w
		defer r.run()()
		test(t, r, w)
	})
}

// keepPolling renews a subscription each poll period, as clients do.
func (r *rig) keepPolling(sub *registry.Subscriber) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_, _ = r.store.Apply(&registry.Subscribe{Meta: r.meta(), Subscriber: sub})
			}
		}
	}()
	return func() { close(done) }
}

func TestSentTwiceThenGivenUp(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		sub := r.subscribe("a", endpoint(0), javaAgent, "")
		defer r.keepPolling(sub)()
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(time.Minute)
		sent := w.sent()
		if len(sent) != 2 || string(sent[0].bytes) != string(sent[1].bytes) || sent[1].addr != endpoint(0) {
			t.Fatalf("sent %d packets, want the same one twice", len(sent))
		}
		if sent[0].at != time.Second || sent[1].at-sent[0].at != 10*time.Second {
			t.Errorf("sent at %v and %v, want at once and 10 s later", sent[0].at, sent[1].at)
		}
		if r.counts.outcome(Failed) != 1 || len(r.counts.latencies()) != 1 || r.sender.Unacked() != 0 {
			t.Errorf("outcomes %v, %d wait", r.counts.outcomes, r.sender.Unacked())
		}
		if st := r.sender.State(10); st.Total != 1 || st.Succeed != 0 || st.Ratio() != 0 {
			t.Errorf("got %+v, want one packet that did not succeed", st)
		}
	})
}

func TestAckEndsIt(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		defer r.keepPolling(r.subscribe("a", endpoint(0), javaAgent, ""))()
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(9 * time.Second)
		w.ack(t, w.sent()[0])
		w.ack(t, w.sent()[0]) // again: costs nothing
		time.Sleep(time.Minute)
		if n := len(w.sent()); n != 1 {
			t.Errorf("sent %d packets, want 1", n)
		}
		if st := r.sender.State(10); st.Total != 1 || st.Succeed != 1 || st.Ratio() != 1 || len(st.Unacked) != 0 {
			t.Errorf("got %+v, want one packet that succeeded", st)
		}
		if r.counts.outcome(Acked) != 1 || r.counts.ignoredFor(UnknownAck) != 1 {
			t.Errorf("outcomes %v, ignored %v", r.counts.outcomes, r.counts.ignored)
		}
	})
}

func TestNewerPacketTakesThePlaceOfAnUnackedOne(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		defer r.keepPolling(r.subscribe("a", endpoint(0), javaAgent, ""))()
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(5 * time.Second)
		r.register("a", 2, 1, "")
		time.Sleep(time.Minute)
		sent := w.sent()
		if len(sent) != 3 || string(sent[1].bytes) != string(sent[2].bytes) || sent[2].at != 16*time.Second {
			t.Fatalf("sent %d packets, want the first once and the second twice", len(sent))
		}
		if r.counts.outcome(Superseded) != 1 || r.counts.outcome(Failed) != 1 {
			t.Errorf("outcomes %v, want one superseded and one failed", r.counts.outcomes)
		}
	})
}

func TestWhoLeftIsNotSentToAgain(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		sub := r.subscribe("a", endpoint(0), javaAgent, "")
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(5 * time.Second)
		r.apply(&registry.Unsubscribe{Meta: r.meta(), Service: sub.Service, Subscriber: sub.SubscriberKey})
		time.Sleep(time.Minute)
		if len(w.sent()) != 1 || r.counts.outcome(Gone) != 1 || r.sender.Unacked() != 0 {
			t.Errorf("sent %d packets, outcomes %v, %d wait", len(w.sent()), r.counts.outcomes, r.sender.Unacked())
		}
	})
}

func TestSubscriptionsRunOut(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		late := r.subscribe("a", endpoint(0), javaAgent, "")
		r.subscribe("a", endpoint(1), javaAgent, "")
		time.Sleep(19 * time.Second) // a poll period is 10 s
		r.apply(&registry.Subscribe{Meta: r.meta(), Subscriber: late})
		time.Sleep(7 * time.Second) // 26 s, and a sweep is each 5 s
		if subs := r.store.Subscribers(serviceKey("a")); len(subs) != 1 || subs[0] != late {
			t.Errorf("%d subscribers are left, want the one who polled late", len(subs))
		}
		r.apply(&registry.SetSwitch{Meta: r.meta(), Entry: "pushCacheMillis", Value: "60000"})
		time.Sleep(90 * time.Second)
		if n := len(r.store.Subscribers(serviceKey("a"))); n != 1 {
			t.Errorf("%d subscribers, want one while the poll period is a minute", n)
		}
		time.Sleep(60 * time.Second)
		if n := len(r.store.Subscribers(serviceKey("a"))); n != 0 {
			t.Errorf("%d subscribers, want none", n)
		}
	})
}

// TestAckRenewsTheSubscription: the Go client of 1.x counts its poll period from
// the latest packet, so that one that hears of changes all the time does not poll.
func TestAckRenewsTheSubscription(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		listens := r.subscribe("a", endpoint(0), goAgent, "")
		r.subscribe("a", endpoint(1), goAgent, "") // does not acknowledge
		heard := 0
		for i := range 20 {
			r.register("a", 1, float64(i+1), "")
			time.Sleep(time.Second)
			packets := w.sent()[heard:]
			heard += len(packets)
			for _, d := range packets {
				if d.addr == endpoint(0) {
					w.ack(t, d)
				}
			}
			time.Sleep(8 * time.Second)
		}
		if subs := r.store.Subscribers(serviceKey("a")); len(subs) != 1 || subs[0] != listens {
			t.Errorf("%d subscribers are left, want the one who acknowledged", len(subs))
		}
		time.Sleep(26 * time.Second)
		if n := len(r.store.Subscribers(serviceKey("a"))); n != 0 {
			t.Errorf("%d subscribers, want none after the silence", n)
		}
	})
}

func TestResetForgetsUnacked(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		defer r.keepPolling(r.subscribe("a", endpoint(0), javaAgent, ""))()
		defer r.keepPolling(r.subscribe("b", endpoint(1), javaAgent, ""))()
		time.Sleep(time.Second)
		r.register("a", 1, 1, strings.Repeat("long ", 500)) // compressed
		r.register("b", 1, 1, "")
		synctest.Wait()
		st := r.sender.State(10)
		if len(st.Unacked) != 2 || st.Total != 2 {
			t.Fatalf("got %+v, want two unacked packets", st)
		}
		for _, text := range st.Unacked {
			if !strings.HasPrefix(text, `{"type":"dom","data":"{`) {
				t.Errorf("got %.60q, want the text of a packet", text)
			}
		}
		if n := len(r.sender.State(1).Unacked); n != 1 {
			t.Errorf("%d texts, want at most 1", n)
		}
		r.sender.Reset()
		time.Sleep(time.Minute)
		if len(w.sent()) != 2 || r.counts.outcome(Forgotten) != 2 {
			t.Errorf("sent %d packets, outcomes %v", len(w.sent()), r.counts.outcomes)
		}
	})
}

func TestAnswerComesBeforeThePush(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		time.Sleep(time.Second)
		r.subscribe("a", endpoint(0), javaAgent, "")
		r.register("a", 1, 1, "") // at the same moment
		time.Sleep(time.Second)
		sent := w.sent()
		if len(sent) != 1 || sent[0].at != time.Second+answerGrace {
			t.Fatalf("got %d packets, want one %v after the look-up", len(sent), answerGrace)
		}
		if got := r.counts.latencies(); !slices.Equal(got, []time.Duration{answerGrace}) {
			t.Errorf("observed %v since the change, want %v", got, answerGrace)
		}
	})
}

func TestWriteErrors(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		w.fail = func(try int) error {
			switch try {
			case 1, 2, 3: // the first packet succeeds at the fourth try
				return syscall.ENOBUFS
			case 5:
				return errors.New("no route to host")
			}
			return nil
		}
		for n := range 3 {
			defer r.keepPolling(r.subscribe(name(n), endpoint(n), javaAgent, ""))()
		}
		time.Sleep(time.Second)
		for n := range 3 {
			r.register(name(n), 1, 1, "")
		}
		time.Sleep(time.Second)
		if n := len(w.sent()); n != 2 {
			t.Errorf("sent %d packets, want all but the one that failed", n)
		}
		if r.counts.outcome(Unsent) != 1 || r.sender.Unacked() != 2 {
			t.Errorf("outcomes %v, %d wait", r.counts.outcomes, r.sender.Unacked())
		}
		if st := r.sender.State(0); st.Total != 3 {
			t.Errorf("got %+v, want a total of 3", st)
		}
	})
}

func TestEncodedOnce(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		var calls atomic.Int64
		plain := r.sender.parts.Payload
		r.sender.parts.Payload = func(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte {
			calls.Add(1)
			return plain(view, key, sub)
		}
		for n := range 300 {
			agent, clusters := javaAgent, ""
			switch n % 3 {
			case 1:
				clusters = "c1"
			case 2:
				agent = goAgent
			}
			r.subscribe("a", endpoint(n), agent, clusters)
		}
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(time.Second)
		if calls.Load() != 3 {
			t.Errorf("the payload was asked for %d times, want 3", calls.Load())
		}
		packets := map[string]int{}
		for _, d := range w.sent() {
			packets[string(d.bytes)]++
		}
		// Java and Go without clusters have the same text here.
		if len(packets) != 2 || len(w.sent()) != 300 {
			t.Errorf("%d packets, %d different ones, want 300 and 2", len(w.sent()), len(packets))
		}
	})
}

func TestEachFormIsAskedFor(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		r.sender.parts.Payload = func(_ *registry.View, _ registry.ServiceKey, sub *registry.Subscriber) []byte {
			return []byte("form " + sub.Form)
		}
		r.subscribe("a", endpoint(1), javaAgent, "")
		r.apply(&registry.Subscribe{Meta: r.meta(), Subscriber: &registry.Subscriber{
			Service: serviceKey("a"), Protocol: registry.ProtocolUDP, Form: "old",
			SubscriberKey: registry.SubscriberKey{Addr: endpoint(2), Agent: javaAgent},
		}})
		r.register("a", 1, 1, "")
		time.Sleep(time.Second)
		var old, usual bool
		for _, d := range w.sent() {
			old = old || strings.Contains(string(d.bytes), "form old")
			usual = usual || strings.Contains(string(d.bytes), `"form "`)
		}
		if !old || !usual {
			t.Errorf("sent the old form %t and the usual one %t, want both", old, usual)
		}
	})
}

func TestLabelSelectorLooksAtEachConsumer(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		selector, err := registry.NewSelector(registry.SelectorLabel, "CONSUMER.label.zone = PROVIDER.label.zone")
		if err != nil {
			t.Fatal(err)
		}
		r.sender.parts.Payload = func(_ *registry.View, _ registry.ServiceKey, sub *registry.Subscriber) []byte {
			return []byte(`{"for":"` + sub.Addr.Addr().String() + `"}`)
		}
		r.apply(&registry.CreateService{Meta: r.meta(), Service: serviceKey("a"), Info: registry.ServiceInfo{Selector: selector}})
		for n := range 3 {
			r.subscribe("a", endpoint(n), javaAgent, "")
		}
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(time.Second)
		for _, d := range w.sent() {
			if !strings.Contains(string(d.bytes), d.addr.Addr().String()) {
				t.Errorf("%v got %s", d.addr, d.bytes)
			}
		}
		if n := len(w.sent()); n != 3 {
			t.Errorf("%d packets, want 3", n)
		}
	})
}

func TestSizeIsJudgedByAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig())
		w := newWire()
		r.sender.conn = w
		stop := r.run()
		// Compression must not help: these texts are as good as random.
		size := 5000
		r.sender.parts.Payload = func(_ *registry.View, key registry.ServiceKey, _ *registry.Subscriber) []byte {
			if key.Name != "large" {
				return []byte("{}")
			}
			text := make([]byte, size)
			x := uint32(1)
			for i := range text {
				x = x*1664525 + 1013904223
				text[i] = 'A' + byte(x>>24)%50
			}
			return text
		}
		r.subscribe("large", endpoint(0), goAgent, "")
		r.subscribe("large", endpoint(1), javaAgent, "")
		r.subscribe("small", endpoint(0), goAgent, "")
		time.Sleep(time.Second)
		targets := func() []netip.AddrPort {
			var list []netip.AddrPort
			for _, d := range w.sent() {
				list = append(list, d.addr)
			}
			slices.SortFunc(list, netip.AddrPort.Compare)
			return list
		}
		r.register("large", 1, 1, "")
		r.register("small", 1, 1, "")
		time.Sleep(time.Second)
		if got := targets(); !slices.Equal(got, []netip.AddrPort{endpoint(0), endpoint(1)}) {
			t.Errorf("sent to %v, want the Java client, and the Go client its small service", got)
		}
		size = 200_000
		r.register("large", 2, 1, "")
		time.Sleep(time.Second)
		if n := len(w.sent()); n != 2 {
			t.Errorf("%d packets, want no further one: it does not fit a datagram", n)
		}
		if n := r.counts.outcome(TooLarge); n != 3 {
			t.Errorf("%d too large, want 3", n)
		}
		stop()
		if n := strings.Count(r.log.String(), "too large"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, r.log)
		}
	})
}

func TestDrainSendsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig())
		w := newWire()
		r.sender.conn = w
		for n := range 1000 {
			r.subscribe("a", endpoint(n), javaAgent, "")
		}
		time.Sleep(time.Second)
		stop := r.run()
		r.register("a", 1, 1, "")
		stop()
		if n := len(w.sent()); n != 1000 {
			t.Errorf("sent %d packets, want 1000", n)
		}
	})
}

func TestBurstsAreSpread(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		for n := range 1000 {
			r.subscribe("a", endpoint(n), javaAgent, "")
		}
		time.Sleep(time.Second)
		r.register("a", 1, 1, "")
		time.Sleep(time.Second)
		at := map[time.Duration]int{}
		for _, d := range w.sent() {
			at[d.at]++
		}
		for when, n := range at {
			if n > burstPackets {
				t.Errorf("%d packets at %v, want at most %d", n, when, burstPackets)
			}
		}
		if len(at) != (1000+burstPackets-1)/burstPackets {
			t.Errorf("sent in %d bursts", len(at))
		}
	})
}

func TestRunNeedsListen(t *testing.T) {
	r := newRig(t, DefaultConfig())
	if err := r.sender.Run(t.Context()); err == nil {
		t.Error("Run before Listen returned nil")
	}
}

func TestComplaints(t *testing.T) {
	var c complaints
	now := time.Now()
	if !c.first(serviceKey("a"), now) || c.first(serviceKey("a"), now.Add(time.Minute)) || !c.first(serviceKey("b"), now) {
		t.Error("not once per service")
	}
	if !c.first(serviceKey("a"), now.Add(complaintPeriod)) {
		t.Error("not again after the period")
	}
	for n := range 3 * maxComplaints {
		c.first(serviceKey(name(n)), now)
	}
	if len(c.last) > maxComplaints {
		t.Errorf("%d services are remembered, want at most %d", len(c.last), maxComplaints)
	}
}
