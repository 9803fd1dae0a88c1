package legacy

import (
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// TestModes: who watches over the instances of a service decides how they are
// kept, and a change of mode takes those along that are there.
func TestModes(t *testing.T) {
	s := newTestServer(t)
	kept := func() (ephemeral bool, checker registry.CheckType) {
		t.Helper()
		i, c := s.find("a", "1.1.1.1", 1, "c1"), s.store.View(key("a")).Cluster("c1")
		if i == nil || c == nil || !i.Healthy || i.Weight != 2 {
			t.Fatalf("instance %+v, cluster %+v", i, c)
		}
		return i.Ephemeral, c.Checker.Type
	}
	s.ok(t, "regDom", "serviceName=a&clusterName=c1&cktype=HTTP&path=/x&enableClientBeat=false")
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1&clusterName=c1&weight=2")
	for _, tt := range []struct {
		params    string
		ephemeral bool
		checker   registry.CheckType
	}{
		{"", false, registry.CheckNone},
		{"enableHealthCheck=true", false, registry.CheckHTTP},
		{"enableClientBeat=true", true, registry.CheckHTTP},
		{"enableHealthCheck=false", true, registry.CheckHTTP},
		{"enableClientBeat=false", false, registry.CheckNone},
		{"enableClientBeat=true&enableHealthCheck=true", true, registry.CheckHTTP},
		{"enableClientBeat=false&enableHealthCheck=false&cluster=c1&cktype=TCP", false, registry.CheckNone},
		{"enableHealthCheck=true", false, registry.CheckTCP},
	} {
		s.ok(t, "updateDom", "dom=a&"+tt.params)
		if ephemeral, checker := kept(); ephemeral != tt.ephemeral || checker != tt.checker {
			t.Errorf("after %q: ephemeral %v, checker %s; want %v, %s", tt.params, ephemeral, checker, tt.ephemeral, tt.checker)
		}
	}
	if n := s.store.Counts(); n.Ephemeral != 0 || n.Persistent != 1 {
		t.Errorf("counts %+v", n)
	}
}

// TestUnwatched: where nobody watches, every cluster is without a probe, so that
// health can be set by hand, and beats register nothing.
func TestUnwatched(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a&enableClientBeat=false")
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1&clusterName=c1")
	s.ok(t, "addCluster4Dom", "serviceName=a&clusterName=c2&cktype=HTTP")
	for _, name := range []string{"DEFAULT", "c1", "c2"} {
		if c := s.store.View(key("a")).Cluster(name); c == nil || c.Checker.Type != registry.CheckNone {
			t.Errorf("cluster %s: %+v", name, c)
		}
	}
	got := s.send(t, "PUT", "/nacos/v1/ns/health?serviceName=a&ip=1.1.1.1&port=1&clusterName=c1&valid=false", "")
	if i := s.find("a", "1.1.1.1", 1, "c1"); got.body != "ok" || i.Healthy || i.Ephemeral {
		t.Errorf("answered %+v, instance %+v", got, i)
	}
	s.json(t, "clientBeat", "dom=a&beat="+escape(`{"ip":"2.2.2.2","port":2}`))
	s.json(t, "clientBeat", "dom=a&beat="+escape(`{"ip":"1.1.1.1","port":1,"cluster":"c1"}`))
	if view := s.store.View(key("a")); len(view.Instances) != 1 || view.Instances[0].Healthy {
		t.Errorf("after beats: %+v", view.Instances)
	}
}

// TestModeLeavesConnections: a gRPC client keeps its instance alive itself.
func TestModeLeavesConnections(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a")
	s.store.OpenClient("c")
	_, err := s.store.Apply(&registry.Register{
		Meta: registry.Meta{At: s.core.Now()}, Service: key("a"), Owner: registry.Owner{Kind: registry.OwnerConnection, Client: "c"},
		Instance: registry.Instance{IP: "1.1.1.1", Port: 1, Cluster: "DEFAULT", Weight: 1, Healthy: true, Enabled: true, Ephemeral: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.ok(t, "updateDom", "dom=a&enableClientBeat=false")
	s.ok(t, "deRegService", "serviceName=a&ip=1.1.1.1&port=1")
	if i := s.find("a", "1.1.1.1", 1, "DEFAULT"); i == nil || !i.Ephemeral {
		t.Errorf("got %+v", i)
	}
}
