package sdk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// overGRPC are the options of a client of servers that serve gRPC on the port of HTTP.
func overGRPC(addresses ...string) []rollcall.Option {
	return []rollcall.Option{rollcall.WithServers(addresses...), rollcall.WithProtocol(rollcall.GRPC), rollcall.WithGRPCPortOffset(0)}
}

// scripted starts a server that does what a script says.
func scripted(t testing.TB, script grpctest.Script) *grpctest.Server {
	t.Helper()
	s, stop, err := grpctest.Serve(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// until waits for something that a scripted server sees.
func until(t testing.TB, s *grpctest.Server, what string, done func() bool) {
	t.Helper()
	if !s.Wait(within(t), done) {
		t.Fatalf("no %s within %v", what, patience)
	}
}

// hosts reports whether a scripted server has the instances of orders with these ports.
func hosts(s *grpctest.Server, ports ...int) func() bool {
	var want []string
	for _, port := range ports {
		want = append(want, fmt.Sprint("10.0.0.7:", port))
	}
	return func() bool { return fmt.Sprint(s.Hosts("DEFAULT_GROUP@@orders")) == fmt.Sprint(want) }
}

func register(t testing.TB, c *rollcall.Client, port int) *rollcall.Registration {
	t.Helper()
	r, err := c.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", uint16(port)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGRPCLife(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	provider, consumer := dial(t, overGRPC(server.Addr())...), dial(t, overGRPC(server.Addr())...)
	ctx := within(t)
	w, err := consumer.Watch(ctx, orders)
	if err != nil {
		t.Fatal(err)
	}
	r, err := provider.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080, rollcall.Tagged("version", "2")))
	if err != nil {
		t.Fatal(err)
	}
	s := see(t, w, "the instance", count(1))
	if in := s.At(0); in.Addr() != "10.0.0.7:8080" || in.Metadata["version"] != "2" || !in.Available() || in.Cluster != "DEFAULT" {
		t.Errorf("got %+v", in)
	}
	second := register(t, provider, 8081)
	see(t, w, "both", count(2))
	if err := r.Update(ctx, func(i *rollcall.Instance) { i.Weight = 2.5 }); err != nil {
		t.Fatal(err)
	}
	see(t, w, "the weight", func(s *rollcall.Snapshot) bool {
		return s.Len() == 2 && (s.At(0).Weight == 2.5 || s.At(1).Weight == 2.5)
	})
	if err := second.Deregister(ctx); err != nil {
		t.Fatal(err)
	}
	see(t, w, "one", count(1))
	if found, err := provider.Lookup(ctx, orders); err != nil || found.Len() != 1 {
		t.Errorf("looked up %v, %v", found, err)
	}
	for s, err := range provider.Services(ctx, rollcall.ServiceQuery{}) {
		if err != nil || s.Name != "orders" {
			t.Errorf("listed %v, %v", s, err)
		}
	}
	if err := r.Drain(ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	see(t, w, "nothing", count(0))
}

// A persistent instance goes over gRPC where servers are able to, and outlives its
// client.
func TestGRPCPersistent(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	c := dial(t, overGRPC(server.Addr())...)
	if err := c.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	in := rollcall.NewInstance("10.0.0.7", 8080)
	in.Ephemeral = false
	if _, err := c.Register(within(t), orders, in); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	other := dial(t, overGRPC(server.Addr())...)
	if found, err := other.Lookup(within(t), orders); err != nil || found.Len() != 1 || found.At(0).Ephemeral {
		t.Errorf("looked up %v, %v", found, err)
	}
	if _, err := other.Register(within(t), orders, rollcall.NewInstance("10.0.0.8", 8080)); !errors.Is(err, rollcall.ErrConflict) {
		t.Errorf("an instance of the other kind: %v", err)
	}
}

// Several instances of one service live side by side even where the second would take
// the place of the first, and come back when a connection of theirs breaks.
func TestGRPCOverwritingServer(t *testing.T) {
	t.Parallel()
	server := scripted(t, grpctest.Script{})
	c := dial(t, overGRPC(server.Addr())...)
	var all []*rollcall.Registration
	for port := 1; port <= 4; port++ {
		all = append(all, register(t, c, port))
	}
	until(t, server, "four instances", hosts(server, 1, 2, 3, 4))
	if err := all[1].Deregister(within(t)); err != nil {
		t.Fatal(err)
	}
	until(t, server, "three instances", hosts(server, 1, 3, 4))
	peers := server.Peers()
	peers[len(peers)-1].End(errors.New("evicted"))
	until(t, server, "a new beginning", func() bool { return len(server.Peers()) > 0 && server.Peers()[0].ID > peers[len(peers)-1].ID })
	until(t, server, "three instances again", hosts(server, 1, 3, 4))
	if err := c.Shutdown(within(t)); err != nil {
		t.Error(err)
	}
	until(t, server, "nobody", func() bool { return len(server.Peers()) == 0 })
}

// Sent to a dead server, the client goes to another one, and has its instance and its
// watch there before it leaves the last.
func TestGRPCReset(t *testing.T) {
	t.Parallel()
	script := grpctest.Script{Negotiates: true, Abilities: []string{grpcv2.AbilityPersistent}}
	from, next := scripted(t, script), scripted(t, script)
	c := dial(t, overGRPC(from.Addr(), next.Addr(), "127.0.0.1:1")...)
	register(t, c, 1)
	w, err := c.Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	see(t, w, "the instance", count(1))
	if len(from.Peers()) == 0 {
		from, next = next, from
	}
	last := from.Peers()[0]
	if err := last.Say(grpcv2.ConnectReset, string(grpcv2.AppendConnectReset(nil, 1, "127.0.0.1", "1"))); err != nil {
		t.Fatal(err)
	}
	until(t, next, "instance", hosts(next, 1))
	if !hosts(from, 1)() {
		t.Error("it left before it was there")
	}
	until(t, next, "watch", func() bool { return slices.Contains(typesOf(next.Peers()[0]), grpcv2.SubscribeService) })
	until(t, from, "end", func() bool { return len(from.Peers()) == 0 })
	for _, f := range last.Asked() {
		if strings.Contains(string(f.Body), grpcv2.Deregister) {
			t.Error("the last server was told to remove the instance")
		}
	}
}

func typesOf(p *grpctest.Peer) (types []string) {
	for _, f := range p.Asked() {
		types = append(types, f.Type)
	}
	return types
}

// After a break all instances are asked for before the first watch.
func TestGRPCInstancesFirst(t *testing.T) {
	t.Parallel()
	server := scripted(t, grpctest.Script{})
	c := dial(t, overGRPC(server.Addr())...)
	for n := range 30 {
		s := rollcall.Service{Name: fmt.Sprint("s", n)}
		if _, err := c.Register(within(t), s, rollcall.NewInstance("10.0.0.7", 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Watch(within(t), s); err != nil {
			t.Fatal(err)
		}
	}
	first := server.Peers()[0]
	first.End(nil)
	done := func() bool {
		peers := server.Peers()
		return len(peers) == 1 && peers[0] != first && strings.Count(fmt.Sprint(typesOf(peers[0])), grpcv2.SubscribeService) == 30
	}
	until(t, server, "all of it again", done)
	instances := 0
	for _, kind := range typesOf(server.Peers()[0]) {
		switch kind {
		case grpcv2.InstanceType:
			instances++
		case grpcv2.SubscribeService:
			if instances < 30-16 { // up to 16 are asked for at once
				t.Fatalf("a watch came after %d instances", instances)
			}
		}
	}
}

// A server that forgets the connection costs a reconnection; one that refuses an
// argument costs an error, and nothing else.
func TestGRPCRefusals(t *testing.T) {
	t.Parallel()
	var forgot atomic.Bool
	server := scripted(t, grpctest.Script{Answer: func(p *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
		switch {
		case f.Type == grpcv2.SubscribeService && forgot.CompareAndSwap(false, true):
			return grpctest.Refuse(grpcv2.CodeUnregistered, "Connection is unregistered."), true
		case f.Type == grpcv2.InstanceType && strings.Contains(string(f.Body), `"port":666,`):
			return grpctest.Refuse(grpcv2.CodeInvalid, "instance format invalid"), true
		}
		return grpctest.Message{}, false
	}})
	c := dial(t, overGRPC(server.Addr())...)
	register(t, c, 1)
	if _, err := c.Watch(within(t), orders); err != nil {
		t.Fatal(err)
	}
	until(t, server, "the instance", hosts(server, 1))
	peer := server.Peers()[0]
	if peer.ID < 2 {
		t.Error("the connection that was forgotten is used")
	}
	_, err := c.Register(within(t), rollcall.Service{Name: "other"}, rollcall.NewInstance("10.0.0.7", 666))
	if !errors.Is(err, rollcall.ErrInvalidArgument) || !strings.Contains(err.Error(), "instance format invalid") {
		t.Errorf("got %v", err)
	}
	if peers := server.Peers(); len(peers) != 1 || peers[0].ID != peer.ID || c.Status().State != rollcall.Connected {
		t.Error("the refusal broke the connection")
	}
}

// On a way that lets nothing back the loss is seen, and when it heals the instance is
// there again, although the server never saw it go.
func TestGRPCHalfOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := dial(t, s.options(t, rollcall.GRPC)...)
	r := register(t, c, 1)
	s.set(faulttest.HalfOpen)
	await(t, c, "the loss", func(st rollcall.Status) bool { return st.State == rollcall.Connecting })
	s.set(faulttest.Healthy)
	await(t, c, "the registration", func(st rollcall.Status) bool { return st.State == rollcall.Connected && st.Registered == 1 })
	if err := r.Update(within(t), func(i *rollcall.Instance) { i.Weight = 3 }); err != nil {
		t.Error(err)
	}
	listed(t, s.server.Addr(), 1)
}

// A push that comes twice, late or broken changes nothing; the newest wins.
func TestGRPCPushes(t *testing.T) {
	t.Parallel()
	server := scripted(t, grpctest.Script{})
	c := dial(t, overGRPC(server.Addr())...)
	w, err := c.Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	see(t, w, "nothing", count(0))
	peer := server.Peers()[0]
	say := func(id int, time int, hosts string) {
		t.Helper()
		body := fmt.Sprintf(`{"requestId":"%d","serviceInfo":{"name":"orders","groupName":"DEFAULT_GROUP","clusters":"","hosts":%s,"lastRefTime":%d}}`, id, hosts, time)
		if err := peer.Say(grpcv2.NotifySubscriber, body); err != nil {
			t.Fatal(err)
		}
	}
	two, one := `[{"ip":"10.0.0.7","port":1},{"ip":"10.0.0.7","port":2}]`, `[{"ip":"10.0.0.7","port":1}]`
	say(1, 20, two)
	see(t, w, "both", count(2))
	revision := w.Snapshot().Revision()
	say(2, 20, two)           // again
	say(3, 10, one)           // late
	say(4, 30, `[{"ip":"10.`) // broken
	say(5, 30, `null`)        // nothing
	say(6, 30, `{"a":[1,2]}`) // no list
	until(t, server, "acknowledgements", func() bool { return len(peer.Heard()) >= 4 })
	say(7, 40, `[{"ip":"10.0.0.7","port":3}]`)
	s := see(t, w, "the newest", count(1))
	if s.At(0).Port != 3 || s.Revision() != revision+1 {
		t.Errorf("revision %d after %d: %v", s.Revision(), revision, s.At(0))
	}
}

// Nothing is left of clients that were closed, in whatever state they were.
func TestGRPCCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	func() {
		server, stop, err := grpctest.Serve(grpctest.Script{})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		hole, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and says nothing
		if err != nil {
			t.Fatal(err)
		}
		defer hole.Close()
		for n, address := range []string{server.Addr(), hole.Addr().String(), "127.0.0.1:1"} {
			for _, wait := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
				c, err := rollcall.New(overGRPC(address)...)
				if err != nil {
					t.Fatal(err)
				}
				for port := range uint16(3) {
					if _, err := c.Register(t.Context(), orders, rollcall.NewInstance("10.0.0.7", port+1), rollcall.WithAsync()); err != nil {
						t.Error(err)
					}
				}
				if _, err := c.Watch(t.Context(), orders, rollcall.WithAsync()); err != nil {
					t.Error(err)
				}
				timer := time.NewTimer(wait)
				<-timer.C
				if err := errors.Join(c.Close(), c.Close()); err != nil {
					t.Errorf("%d after %v: %v", n, wait, err)
				}
			}
		}
	}()
	goleak.VerifyNone(t, before)
}

// benchmarked returns a consumer's watch and a registration of a provider, on a server
// that has a service of n instances besides.
func benchmarked(b *testing.B, n int) (*rollcall.Watch, *rollcall.Registration) {
	server := servertest.New(b)
	provider, consumer := dial(b, overGRPC(server.Addr())...), dial(b, overGRPC(server.Addr())...)
	for i := range n {
		in := rollcall.NewInstance(fmt.Sprintf("10.1.%d.%d", i>>8, i&255), 8080, rollcall.Tagged("version", "1.2.3"))
		if _, err := provider.Register(within(b), orders, in, rollcall.WithAsync()); err != nil {
			b.Fatal(err)
		}
	}
	r := register(b, provider, 1)
	w, err := consumer.Watch(within(b), orders)
	if err != nil {
		b.Fatal(err)
	}
	see(b, w, "all", count(n+1))
	return w, r
}

// next takes updates until one is what is waited for.
func next(b *testing.B, w *rollcall.Watch, ok func(*rollcall.Snapshot) bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case u := <-w.Updates():
			if ok(u.Snapshot) {
				return
			}
		case <-timer.C:
			b.Fatal("the update does not come")
		}
	}
}

// BenchmarkGRPCChange measures the way of a change: from the call that makes it, through
// the server, which merges what comes in quick succession, to the value on the channel of
// another client.
func BenchmarkGRPCChange(b *testing.B) {
	w, r := benchmarked(b, 10)
	ctx := context.Background()
	weight := 1.0
	for b.Loop() {
		weight = 3 - weight
		if err := r.Update(ctx, func(i *rollcall.Instance) { i.Weight = weight }); err != nil {
			b.Fatal(err)
		}
		next(b, w, func(s *rollcall.Snapshot) bool {
			for i := range s.All() {
				if i.IP == "10.0.0.7" {
					return i.Weight == weight
				}
			}
			return false
		})
	}
}

// BenchmarkGRPCPush measures what a client does with a push of a list of which one
// instance has changed: from the moment at which the server writes it to the value on the
// channel.
func BenchmarkGRPCPush(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			server := scripted(b, grpctest.Script{})
			c := dial(b, overGRPC(server.Addr())...)
			w, err := c.Watch(within(b), orders)
			if err != nil {
				b.Fatal(err)
			}
			see(b, w, "nothing", count(0))
			peer, list := server.Peers()[0], listOf(n-1)
			port := uint16(0)
			for b.Loop() {
				b.StopTimer()
				port++
				body := fmt.Sprintf(`{"requestId":"%d","serviceInfo":{"name":"orders","groupName":"DEFAULT_GROUP","clusters":"","lastRefTime":%d,"hosts":[{"ip":"10.0.0.7","port":%d}%s]}}`,
					port, port, port, list)
				message := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: grpcv2.NotifySubscriber}, []byte(body))
				b.StartTimer()
				if err := peer.Send(message); err != nil {
					b.Fatal(err)
				}
				next(b, w, func(s *rollcall.Snapshot) bool { return s.Len() == n && s.At(0).Port == port })
			}
		})
	}
}

// listOf returns instances as a server of ours writes them, each after a comma.
func listOf(n int) string {
	var list []byte
	for i := range n {
		list = grpcv2.AppendHost(append(list, ','), &grpcv2.Host{
			ID: fmt.Appendf(nil, "10.1.%d.%d#8080#DEFAULT#DEFAULT_GROUP@@orders", i>>8, i&255), IP: fmt.Sprintf("10.1.%d.%d", i>>8, i&255), Port: 8080,
			Cluster: "DEFAULT", Service: "DEFAULT_GROUP@@orders", Metadata: `{"version":"1.2.3","zone":"a"}`, Weight: 1, Healthy: true, Enabled: true,
			Ephemeral: true, BeatIntervalMillis: 5000, BeatTimeoutMillis: 15000, DeleteTimeoutMillis: 30000,
		})
	}
	return string(list)
}
