package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// sinks is a store's sink that a test fills and empties at any time.
type sinks struct {
	list atomic.Pointer[[]registry.Sink]
}

func (s *sinks) set(list ...registry.Sink) { s.list.Store(&list) }

func (s *sinks) Emit(e *registry.Event) {
	if list := s.list.Load(); list != nil {
		for _, sink := range *list {
			sink.Emit(e)
		}
	}
}

// diary keeps the kinds of an instance's events with their times.
type diary struct {
	start time.Time
	mu    sync.Mutex
	lines []string
}

func (d *diary) Emit(e *registry.Event) {
	if e.Kind != registry.InstanceUnhealthy && e.Kind != registry.InstanceRemoved {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%v %s", time.Since(d.start), e.Kind))
}

// ephemeral is the registration of an HTTP client's instance.
func ephemeral(at registry.Instant, service string, n int, m registry.Metadata) *registry.Register {
	return &registry.Register{
		Meta:    registry.Meta{At: at, Cause: registry.Cause{Kind: registry.CauseRequest}},
		Service: serviceKey(service), Owner: registry.Owner{Kind: registry.OwnerHTTP},
		Instance: registry.Instance{
			IP: fmt.Sprintf("10.0.%d.%d", n>>8, n&255), Port: 8080, Cluster: registry.DefaultCluster,
			Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Metadata: m,
		},
	}
}

func serviceKey(name string) registry.ServiceKey {
	return registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: name}
}

func beat(at registry.Instant, r *registry.Register) *registry.Beat {
	return &registry.Beat{Meta: registry.Meta{At: at}, Service: r.Service, Instance: r.Instance.Key()}
}

func apply(t testing.TB, store *registry.Store, c registry.Command) {
	t.Helper()
	if _, err := store.Apply(c); err != nil {
		t.Fatal(err)
	}
}

// TestLifeTimes runs the clock and the expirer over a store: life times that
// instances ask for, in milliseconds, and those that nobody should ask for.
func TestLifeTimes(t *testing.T) {
	for _, test := range []struct {
		name, metadata string
		want           []string // after the last beat
	}{
		{"default", ``, []string{"15.25s unhealthy", "30.25s removed"}},
		{
			"asked for",
			`{"preserved.heart.beat.interval":"1000","preserved.heart.beat.timeout":"3000","preserved.ip.delete.timeout":"6000"}`,
			[]string{"3.25s unhealthy", "6.25s removed"},
		},
		{
			"seconds meant, milliseconds taken",
			`{"preserved.heart.beat.interval":"30","preserved.heart.beat.timeout":"120","preserved.ip.delete.timeout":"180"}`,
			[]string{"250ms unhealthy", "250ms removed"},
		},
		{
			"removed before unhealthy",
			`{"preserved.heart.beat.timeout":"20000","preserved.ip.delete.timeout":"10000"}`,
			[]string{"10.25s removed"},
		},
		{"not a number", `{"preserved.heart.beat.timeout":"abc"}`, []string{"15.25s unhealthy", "30.25s removed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &sinks{}
				store := registry.NewStore(registry.DefaultConfig(), out)
				log := slog.New(slog.DiscardHandler)
				clock := NewClock(DefaultConfig(), log)
				expirer := NewExpirer(func(context.Context) error { store.Expire(clock.Now()); return nil }, log)
				ctx, cancel := context.WithCancel(t.Context())
				var parts sync.WaitGroup
				for _, run := range []func(context.Context) error{clock.Run, expirer.Run} {
					parts.Go(func() {
						if err := run(ctx); err != nil {
							t.Error(err)
						}
					})
				}
				r := ephemeral(clock.Now(), "orders", 1, registry.Metadata(test.metadata))
				apply(t, store, r)
				for range 40 {
					time.Sleep(100 * time.Millisecond)
					store.Beat(beat(clock.Now(), r))
				}
				notes := &diary{start: time.Now()}
				out.set(notes, expirer)
				time.Sleep(time.Minute)
				cancel()
				parts.Wait()
				if !slices.Equal(notes.lines, test.want) {
					t.Errorf("got %q, want %q", notes.lines, test.want)
				}
				want := ExpirerStats{Ticks: 255, Unhealthy: int64(len(test.want) - 1), Expired: 1}
				if got := expirer.Stats(); got.Unhealthy != want.Unhealthy || got.Expired != want.Expired || got.Ticks < want.Ticks {
					t.Errorf("counted %+v, want %+v", got, want)
				}
			})
		})
	}
}

// TestLongPauseExpiresNobody stops the server for 45 s while clients beat every
// five seconds, and lets expiry run before the first beat that comes after it.
func TestLongPauseExpiresNobody(t *testing.T) {
	out := &sinks{}
	store := registry.NewStore(registry.DefaultConfig(), out)
	clock, machine, _ := testClock(t)
	var fleet []*registry.Register
	for n := range 1000 {
		r := ephemeral(clock.Now(), fmt.Sprint("svc-", n%10), n, "")
		apply(t, store, r)
		fleet = append(fleet, r)
	}
	beatAll := func() {
		for _, r := range fleet {
			if !store.Beat(beat(clock.Now(), r)).Known {
				t.Fatalf("%v is gone", r.Instance.Key())
			}
		}
	}
	pass := func(d time.Duration) {
		for ; d > 0; d -= clockTick {
			machine.run(clock, clockTick)
			store.Expire(clock.Now())
		}
	}
	for range 4 {
		beatAll()
		pass(5 * time.Second)
	}
	notes := &diary{start: time.Now()}
	out.set(notes)
	machine.pass(45 * time.Second)
	store.Expire(clock.Now()) // the expirer may wake before the clock
	clock.tick()
	pass(5 * time.Second) // no beat yet
	if len(notes.lines) > 0 {
		t.Fatalf("%d events, first %s", len(notes.lines), notes.lines[0])
	}
	for range 4 {
		beatAll()
		pass(5 * time.Second)
	}
	if len(notes.lines) > 0 {
		t.Fatalf("%d events, first %s", len(notes.lines), notes.lines[0])
	}
	pass(16 * time.Second) // real silence still counts
	if len(notes.lines) != len(fleet) {
		t.Errorf("%d of %d became unhealthy", len(notes.lines), len(fleet))
	}
}

func TestBrakeIsLoggedAndCounted(t *testing.T) {
	var text bytes.Buffer
	out := &sinks{}
	store := registry.NewStore(registry.DefaultConfig(), out)
	now := registry.Instant{}
	e := NewExpirer(func(context.Context) error { store.Expire(now); return nil }, slog.New(slog.NewTextHandler(&text, nil)))
	out.set(e)
	for service := range maxBrakeNotes + 3 {
		for n := range 10 {
			apply(t, store, ephemeral(now, fmt.Sprint("svc-", service), n, ""))
		}
	}
	for now.Lease = 0; now.Lease < 75*time.Second; now.Lease += expireTick {
		e.tick(t.Context())
	}
	const services = maxBrakeNotes + 3
	got := e.Stats()
	want := ExpirerStats{
		Ticks: got.Ticks, Unhealthy: 10 * services, Expired: 10 * services, Holds: services, Releases: services,
	}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	for line, n := range map[string]int{
		`msg="the brake holds the expiry of a service"`:                   maxBrakeNotes,
		`msg="the brake lets the expiry of a service go on"`:              maxBrakeNotes,
		`msg="the brake acted on more services than are logged"`:          2,
		`service=svc-0 why="10 of 10 instances fell silent at once"`:      1,
		`component=expiry namespace=public group=DEFAULT_GROUP service=s`: 2 * maxBrakeNotes,
	} {
		if got := strings.Count(text.String(), line); got != n {
			// Which services are left out is up to the order of the shards.
			if n == 1 && got == 0 {
				continue
			}
			t.Errorf("%q appears %d times, want %d", line, got, n)
		}
	}
}

func TestFailedExpiryIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var mu sync.Mutex
		fault := errors.New("disk full")
		e := NewExpirer(func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a slow disk could stop expiry")
			}
			mu.Lock()
			defer mu.Unlock()
			return fault
		}, slog.New(slog.NewTextHandler(&text, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = e.Run(ctx) }()
		time.Sleep(10*time.Second + time.Millisecond)
		mu.Lock()
		fault = nil
		mu.Unlock()
		time.Sleep(10 * time.Second)
		cancel()
		<-ended
		if n := strings.Count(text.String(), "disk full"); n != 1 {
			t.Errorf("logged %d times: %s", n, &text)
		}
		if n := strings.Count(text.String(), "durable again"); n != 1 {
			t.Errorf("recovery logged %d times: %s", n, &text)
		}
		if got := e.Stats().Failures; got != 40 {
			t.Errorf("%d failures counted, want 40", got)
		}
	})
}

// BenchmarkExpiry measures one tick of expiry with 100,000 HTTP instances, ten a
// service, that beat every five seconds. Four such ticks are run a second: the
// share of a core is ns/op times 4 over a second, reported as %core.
func BenchmarkExpiry(b *testing.B) {
	const instances, perService = 100_000, 10
	store := registry.NewStore(registry.DefaultConfig(), &sinks{})
	now := registry.Instant{Wall: 1_700_000_000_000}
	fleet := make([]*registry.Beat, instances)
	for n := range fleet {
		r := ephemeral(now, fmt.Sprint("service-", n/perService), n, `{"zone":"a","version":"1.2.3","weight":"1"}`)
		apply(b, store, r)
		fleet[n] = beat(now, r)
	}
	const ticksPerBeat = int(5 * time.Second / expireTick)
	beatSome := func(tick int) {
		for n := tick % ticksPerBeat; n < instances; n += ticksPerBeat {
			fleet[n].At = now
			store.Beat(fleet[n])
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		now.Lease += expireTick
		beatSome(n)
		b.StartTimer()
		store.Expire(now)
	}
	perTick := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(100*perTick/float64(expireTick.Nanoseconds()), "%core")
}
