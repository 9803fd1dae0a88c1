package compat

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// aMoment is for what needs no beat and no poll; aPoll for what an SDK learns at
// its next poll, which is 10 s away at most.
const (
	aMoment = 3 * time.Second
	aPoll   = 12 * time.Second
)

// plain is an instance with nothing said of it.
func plain(p place, port int) Instance {
	return Instance{Service: p.service, Group: p.group, IP: "10.0.0.7", Port: port, Weight: 1, Enabled: true}
}

// lasting returns an instance that lives without beats longer than any test.
func lasting(port int) Instance {
	return Instance{
		IP: "10.0.9.9", Port: port, Weight: 1, Enabled: true,
		Metadata: map[string]string{"preserved.heart.beat.timeout": "600000", "preserved.ip.delete.timeout": "600000"},
	}
}

// only wants exactly these addresses.
func only(want ...string) func([]Instance) bool {
	return func(hosts []Instance) bool {
		have := addrs(hosts)
		if len(have) != len(want) {
			return false
		}
		for _, addr := range want {
			if _, ok := find(hosts, addr); !ok {
				return false
			}
		}
		return true
	}
}

// with wants these addresses, and maybe others.
func with(want ...string) func([]Instance) bool {
	return func(hosts []Instance) bool {
		for _, addr := range want {
			if _, ok := find(hosts, addr); !ok {
				return false
			}
		}
		return true
	}
}

// where wants an instance that is as ok says.
func where(addr string, ok func(Instance) bool) func([]Instance) bool {
	return func(hosts []Instance) bool {
		h, found := find(hosts, addr)
		return found && ok(h)
	}
}

// place returns a service in a group and namespace of its own where the SDK has
// them.
func (d *driver) place(service string) place {
	p := place{service: service}
	if d.groups {
		p.group = "g7"
	}
	if d.namespaces {
		p.namespace = "team-a"
	}
	return p
}

// bare registers with ip and port alone: every default is the server's or the
// SDK's.
func bare(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	c := b.client(t, s, "")
	t.Logf("SDK: %s", c.sdk)
	p := place{service: "bare"}
	inst := plain(p, 8080)
	if l := c.do("status", Instance{}); l.Text != "UP" {
		t.Errorf("the SDK finds the server %q, want UP", l.Text)
	}
	// A look-up of a service that nobody knows is empty, not an error that stops it.
	if l := c.try("lookup", plain(place{service: "nobody"}, 1)); len(l.Hosts) != 0 {
		t.Errorf("a service without instances has %+v", l.Hosts)
	}
	c.do("register", inst)
	cluster := "DEFAULT"
	if b.driver.cluster != "" {
		cluster = b.driver.cluster
	}
	var got opsv1.Candidate
	there := func() bool {
		candidates := s.explain(p).Candidates
		i := slices.IndexFunc(candidates, func(c opsv1.Candidate) bool {
			return addrOf(c.IP, c.Port) == inst.addr() && c.Cluster == cluster
		})
		if i >= 0 {
			got = candidates[i]
		}
		return i >= 0
	}
	eventually(t, aMoment, "the registration in cluster "+cluster, there)
	if got.Weight != 1 || !got.Healthy || !got.Enabled || !got.Ephemeral {
		t.Errorf("registered %+v, want weight 1, healthy, enabled, ephemeral", got.Instance)
	}
	c.lookup("bare", "", aMoment, "the instance", only(inst.addr()))
	inst.Cluster = b.driver.cluster
	c.do("deregister", inst)
	eventually(t, aMoment, "the deregistration", func() bool { return !there() })
}

// rich is an instance with something to say in every field.
func (d *driver) rich(p place, port int) Instance {
	inst := plain(p, port)
	inst.Weight = 2.5
	inst.Metadata = map[string]string{"zone": "a", "json": `{"a":[1,"b"]}`, "text": "größe 名前", "empty": ""}
	if !d.noClusters {
		inst.Cluster = "c1"
	}
	return inst
}

// life registers with everything set, looks up, deregisters, and waits whether
// the SDK's beats bring the dead back.
func life(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("life")
	c := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	c.do("register", inst)
	eventually(t, aMoment, "the registration", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	checkStored(t, s, p, inst)
	hosts := c.lookup(p.service, p.group, aMoment, "the instance", only(inst.addr()))
	checkShown(t, hosts, inst)

	c.do("deregister", inst)
	eventually(t, aMoment, "the deregistration", func() bool { _, ok := s.candidate(p, inst.addr()); return !ok })
	events := s.history(p, inst.addr())
	if last := events[len(events)-1]; last.Kind != "removed" || last.Cause.Kind != "request" {
		t.Errorf("the last event is %q by %q, want removed by a request", last.Kind, last.Cause.Kind)
	}
	throughout(t, 7*time.Second, "a deregistered instance stays away", func() bool {
		_, ok := s.candidate(p, inst.addr())
		return !ok
	})
}

// checkStored compares an instance with what the server explains.
func checkStored(t *testing.T, s *server, p place, want Instance) {
	t.Helper()
	got, ok := s.candidate(p, want.addr())
	if !ok {
		t.Fatalf("the server does not have %s", want.addr())
	}
	cluster := want.Cluster
	if cluster == "" {
		cluster = "DEFAULT"
	}
	if !got.Kept || !got.Healthy || !got.Ephemeral || got.Enabled != want.Enabled || got.Weight != want.Weight || got.Cluster != cluster {
		t.Errorf("the server has %+v, want %+v", got, want)
	}
	if !maps.Equal(got.Metadata, want.Metadata) {
		t.Errorf("the server has metadata %q, want %q", got.Metadata, want.Metadata)
	}
}

// checkShown compares an instance with what the SDK shows.
func checkShown(t *testing.T, hosts []Instance, want Instance) {
	t.Helper()
	got, ok := find(hosts, want.addr())
	if !ok {
		t.Fatalf("the SDK shows %+v, not %s", hosts, want.addr())
	}
	cluster := want.Cluster
	if cluster == "" {
		cluster = "DEFAULT"
	}
	if got.Cluster != cluster || got.Weight != want.Weight || !got.Healthy || !got.Enabled || !maps.Equal(got.Metadata, want.Metadata) {
		t.Errorf("the SDK shows %+v, want %+v", got, want)
	}
}

// update changes weight and metadata by the SDK's call, which must hold although
// its beats still carry what it registered.
func update(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("update")
	c := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	c.do("register", inst)
	inst.Weight = 3.5
	inst.Metadata = map[string]string{"zone": "b"}
	c.do("update", inst)
	right := func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && got.Weight == inst.Weight && maps.Equal(got.Metadata, inst.Metadata)
	}
	eventually(t, aMoment, "the update", right)
	throughout(t, 7*time.Second, "a beat does not undo the update", right)
	hosts := c.lookup(p.service, p.group, aPoll, "the update", where(inst.addr(), func(h Instance) bool { return h.Weight == 3.5 }))
	checkShown(t, hosts, inst)
}

// weights registers by hand what adapters choke on: weights of nothing, tiny and
// huge. The SDK must show them as they are.
func weights(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("weights")
	want := map[int]float64{9001: 0, 9002: 0.01, 9003: 10000}
	var all []string
	for port, weight := range want {
		inst := lasting(port)
		inst.Weight = weight
		s.register(p, inst)
		all = append(all, inst.addr())
	}
	c := b.client(t, s, p.namespace)
	for _, h := range c.lookup(p.service, p.group, aMoment, "three instances", only(all...)) {
		if h.Weight != want[h.Port] {
			t.Errorf("the SDK shows weight %v of port %d, want %v", h.Weight, h.Port, want[h.Port])
		}
	}
}

// odd has metadata of the characters that forms and queries are made of, which must
// come through registration, beats and look-ups.
func odd(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("odd")
	c := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	inst.Metadata = map[string]string{"a&b=c": "100%;x+y #1&z=?", "quote": `"\'`, "percent": "%41%zz", "lines": "1\n2\t3"}
	c.do("register", inst)
	checkShown(t, c.lookup(p.service, p.group, aMoment, "the instance", only(inst.addr())), inst)
	if !b.driver.grpc {
		awaitBeat(t, s, p, inst)
	}
	checkStored(t, s, p, inst)
}

// largeSize makes a list whose packet, compressed, is beyond the 4,024 bytes that
// the Go SDK's receiver takes.
const largeSize = 300

// large has a service that no small packet holds. Who cannot take the packet must
// still learn of it by polling.
func large(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("large")
	var all []string
	add := func(i int) {
		inst := lasting(9001 + i)
		inst.Metadata["seed"] = strconv.FormatUint(uint64(i+1)*0x9E3779B97F4A7C15, 36)
		s.register(p, inst)
		all = append(all, inst.addr())
	}
	for i := range largeSize {
		add(i)
	}
	c := b.client(t, s, p.namespace)
	c.do("subscribe", Instance{Service: p.service, Group: p.group})
	c.lookup(p.service, p.group, aMoment, "all instances", only(all...))
	start := time.Now()
	add(largeSize)
	got := c.told(p.service, start, aPoll, "one instance more", only(all...))
	t.Logf("told of %d instances after %s", len(all), got.at.Sub(start).Round(time.Millisecond))
}
