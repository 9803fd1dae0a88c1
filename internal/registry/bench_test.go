package registry

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"
)

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Emit(*Event) {}

// filled returns a store with services of some instances each, all registered
// over HTTP with three entries of metadata.
func filled(services, each int) (*Store, []Register) {
	s := NewStore(DefaultConfig(), discard{})
	commands := make([]Register, 0, services*each)
	for n := range services {
		for i := range each {
			commands = append(commands, registration(n, i))
		}
	}
	for i := range commands {
		if _, err := s.Apply(&commands[i]); err != nil {
			panic(err)
		}
	}
	return s, commands
}

func registration(n, i int) Register {
	return Register{
		Meta:    Meta{At: Instant{Wall: wall0}, Cause: Cause{Kind: CauseRequest, API: "http-v1", Op: "register"}},
		Service: named("service-" + strconv.Itoa(n)),
		Instance: Instance{
			IP: fmt.Sprintf("10.%d.%d.%d", n/250, n%250, i%250), Port: int32(8080 + i/250), Cluster: DefaultCluster,
			Weight: 1, Healthy: true, Enabled: true,
			Metadata: NewMetadata(map[string]string{
				"version": "1.4." + strconv.Itoa(n%7), "zone": "eu-west-1a", "preserved.register.source": "SPRING_CLOUD",
			}),
		},
	}
}

// What is done all the time allocates nothing.
func TestAllocations(t *testing.T) {
	s, commands := filled(10, 10)
	c := &commands[7]
	beat := &Beat{Meta: c.Meta, Service: c.Service, Instance: c.Instance.Key()}
	now := c.At
	view := s.View(c.Service)
	for name, f := range map[string]func(){
		"beat":           func() { s.Beat(beat) },
		"register again": func() { _, _ = s.Apply(c) },
		"view":           func() { s.View(c.Service) },
		"select":         func() { Select(view, Query{}) },
		"expire":         func() { now.Lease += tick; s.Expire(now); s.Beat(beat) },
	} {
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// Instances of one service share equal metadata, whatever registers between them.
func TestMetadataIsShared(t *testing.T) {
	s := NewStore(DefaultConfig(), discard{})
	const services, each = 1000, 3
	for n := range services * each {
		c := registration(n%services, n/services)
		c.Instance.Metadata = c.Instance.Metadata.With(NewMetadata(map[string]string{"name": c.Service.Name}))
		_, _ = s.Apply(&c)
	}
	for n := range services {
		list := s.View(registration(n, 0).Service).Instances
		for _, i := range list[1:] {
			if unsafe.StringData(string(i.Metadata)) != unsafe.StringData(string(list[0].Metadata)) {
				t.Fatalf("service %d holds its metadata more than once", n)
			}
		}
	}
}

func BenchmarkRegisterNew(b *testing.B) {
	commands := make([]Register, 100_000)
	for n := range commands {
		commands[n] = registration(n/10, n%10)
	}
	var s *Store
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if n%len(commands) == 0 {
			b.StopTimer()
			s = NewStore(DefaultConfig(), discard{})
			b.StartTimer()
		}
		_, _ = s.Apply(&commands[n%len(commands)])
		n++
	}
}

func BenchmarkRegisterAgain(b *testing.B) {
	for _, changed := range []bool{false, true} {
		b.Run(fmt.Sprintf("changed=%t", changed), func(b *testing.B) {
			s, commands := filled(1000, 10)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				c := &commands[n%len(commands)]
				if changed {
					c.Instance.Weight = float64(1 + n/len(commands)%100)
				}
				_, _ = s.Apply(c)
				n++
			}
		})
	}
}

func BenchmarkBeat(b *testing.B) {
	s, commands := filled(10_000, 10)
	beats := make([]Beat, len(commands))
	for n, c := range commands {
		beats[n] = Beat{Meta: c.Meta, Service: c.Service, Instance: c.Instance.Key()}
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if !s.Beat(&beats[n%len(beats)]).Known {
			b.Fatal("unknown")
		}
		n += 7
	}
}

func BenchmarkBeatParallel(b *testing.B) {
	s, commands := filled(10_000, 10)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n += 7 {
			c := &commands[n%len(commands)]
			s.Beat(&Beat{Meta: c.Meta, Service: c.Service, Instance: c.Instance.Key()})
		}
	})
}

func BenchmarkView(b *testing.B) {
	for _, each := range []int{10, 1000} {
		s, commands := filled(1, each)
		key := commands[0].Service
		b.Run(fmt.Sprintf("cached/%d", each), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.View(key)
			}
		})
		b.Run(fmt.Sprintf("built/%d", each), func(b *testing.B) {
			svc := s.shard(key).services[key]
			b.ReportAllocs()
			for b.Loop() {
				svc.view.Store(nil)
				s.View(key)
			}
		})
	}
}

func BenchmarkSelect(b *testing.B) {
	for _, each := range []int{10, 1000} {
		s, commands := filled(1, each)
		for i := range each / 5 { // a fifth is unhealthy
			_, _ = s.Apply(&SetHealth{Service: commands[0].Service, Instance: commands[i*5].Instance.Key(), All: true})
		}
		v := s.View(commands[0].Service)
		for _, q := range []struct {
			name string
			Query
		}{
			{"all", Query{}},
			{"cluster", Query{Clusters: []string{DefaultCluster}}},
			{"healthyOnly", Query{HealthyOnly: true}},
		} {
			b.Run(fmt.Sprintf("%s/%d", q.name, each), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Select(v, q.Query)
				}
			})
		}
	}
}

// BenchmarkExpire lets a second of lease time pass over 100,000 leases whose
// clients beat every 5 s, in four steps. The beats are not timed.
func BenchmarkExpire(b *testing.B) {
	const leases, period = 100_000, 5 * time.Second
	s, commands := filled(leases/10, 10)
	now := Instant{Wall: wall0}
	next := 0
	b.ReportAllocs()
	for b.Loop() {
		for range 4 {
			b.StopTimer()
			now.Lease += 250 * time.Millisecond
			now.Wall += 250
			for range leases / int(period/(250*time.Millisecond)) {
				c := &commands[next%leases]
				s.Beat(&Beat{Meta: Meta{At: now}, Service: c.Service, Instance: c.Instance.Key()})
				next++
			}
			b.StartTimer()
			s.Expire(now)
		}
	}
}

// BenchmarkSnapshot writes and reads 10,000 persistent instances.
func BenchmarkSnapshot(b *testing.B) {
	s := NewStore(DefaultConfig(), discard{})
	for n := range 10_000 {
		c := registration(n/10, n%10)
		c.Owner.Kind = OwnerDurable
		_, _ = s.Apply(&c)
	}
	var text bytes.Buffer
	write := func(b *testing.B) {
		text.Reset()
		if err := s.Durable()(&text); err != nil {
			b.Fatal(err)
		}
	}
	write(b)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			write(b)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ReadSnapshot(bytes.NewReader(text.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// memoryCases are instances of 10 a service, 3 entries of metadata each, which the
// instances of a service share or not; over HTTP, or through one connection for
// each. most is what one may cost, in bytes of the heap.
var memoryCases = []struct {
	name   string
	shared bool
	kind   OwnerKind
	most   float64
}{
	{"http/shared", true, OwnerHTTP, 250},
	{"http/own", false, OwnerHTTP, 350},
	{"connection/shared", true, OwnerConnection, 600},
}

// What an instance costs stays bounded.
func TestBytesPerInstance(t *testing.T) {
	for _, tt := range memoryCases {
		if got := bytesPerInstance(20_000, tt.shared, tt.kind); got > tt.most {
			t.Errorf("%s: an instance takes %.0f bytes, want at most %.0f", tt.name, got, tt.most)
		}
	}
}

// BenchmarkMemory reports the live heap of an instance, of 100,000.
func BenchmarkMemory(b *testing.B) {
	for _, tt := range memoryCases {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerInstance(100_000, tt.shared, tt.kind), "B/instance")
			}
		})
	}
}

// bytesPerInstance fills a store: one instance of each service registers, then the
// next of each.
func bytesPerInstance(instances int, shared bool, kind OwnerKind) float64 {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	s := NewStore(DefaultConfig(), discard{})
	empty := heap()
	for n := range instances {
		c := registration(n%(instances/10), n/(instances/10))
		if c.Owner.Kind = kind; kind == OwnerConnection {
			c.Owner.Client = ClientID("1795996800000_10.0.0.1_" + strconv.Itoa(n))
			s.OpenClient(c.Owner.Client)
		}
		if !shared {
			c.Instance.Metadata = c.Instance.Metadata.With(NewMetadata(map[string]string{"version": strconv.Itoa(n)}))
		}
		_, _ = s.Apply(&c)
	}
	full := heap()
	runtime.KeepAlive(s)
	return (full - empty) / float64(instances)
}

// BenchmarkCommand encodes and decodes the registration of a persistent instance,
// as it goes through the durable log.
func BenchmarkCommand(b *testing.B) {
	c := durableCommands()[0]
	data, err := EncodeCommand(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := EncodeCommand(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeCommand(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSubscribers lists 10,000 subscribers of a service, for people and for those
// who tell them of a change.
func BenchmarkSubscribers(b *testing.B) {
	s := NewStore(DefaultConfig(), discard{})
	key := ServiceKey{Namespace: DefaultNamespace, Group: DefaultGroup, Name: "orders"}
	for n := range 10_000 {
		id := ClientID(fmt.Sprintf("1795996800000_127.0.0.1_%d", 20_000+n*7919%10_007))
		s.OpenClient(id)
		if _, err := s.Apply(&Subscribe{Subscriber: &Subscriber{
			SubscriberKey: SubscriberKey{Client: id}, Service: key, Protocol: ProtocolGRPC,
		}}); err != nil {
			b.Fatal(err)
		}
	}
	for name, list := range map[string]func(ServiceKey) []*Subscriber{"sorted": s.Subscribers, "audience": s.Audience} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list(key)
			}
		})
	}
}
