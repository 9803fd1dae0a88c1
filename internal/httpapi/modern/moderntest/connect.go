package moderntest

import (
	"net/netip"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Connect gives the server a gRPC client that holds an instance and subscribes.
func (s *Server) Connect(t testing.TB) {
	t.Helper()
	const id = "1700000000000_10.0.0.5_51234"
	s.Told.Open = []naming.Connection{{
		ID: id, Peer: netip.MustParseAddrPort("10.0.0.5:51234"), IP: "10.0.0.5", Version: "Nacos-Java-Client:v2.5.1",
		App: "shop", Module: "naming", Labels: map[string]string{"source": "sdk"}, Since: 1700000000000, LastActive: 1700000000100,
	}}
	s.Store.OpenClient(id)
	key := registry.ServiceKey{Namespace: "public", Group: "g", Name: "held"}
	held := registry.Instance{IP: "10.0.0.5", Port: 8080, Cluster: "DEFAULT", Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
	reg := naming.Registration{Service: key, Instance: held, Client: id}
	if err := s.Core.Register(t.Context(), registry.Cause{}, reg.Modern()); err != nil {
		t.Fatal(err)
	}
	err := s.Core.Subscribe(t.Context(), registry.Cause{}, &registry.Subscriber{
		SubscriberKey: registry.SubscriberKey{Client: id, Addr: netip.MustParseAddrPort("10.0.0.5:51234"), Agent: "Nacos-Java-Client:v2.5.1"},
		Service:       key, Protocol: registry.ProtocolGRPC, App: "shop",
	})
	if err != nil {
		t.Fatal(err)
	}
}
