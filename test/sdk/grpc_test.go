package sdk

import (
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// overGRPC are the options of a client of a server that serves gRPC on the port of HTTP.
func overGRPC(address string) []rollcall.Option {
	return []rollcall.Option{rollcall.WithServers(address), rollcall.WithProtocol(rollcall.GRPC), rollcall.WithGRPCPortOffset(0)}
}

func TestGRPCLife(t *testing.T) {
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
	second, err := provider.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8081))
	if err != nil {
		t.Fatal(err)
	}
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
