package registry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func agentsOf(w *world) string {
	var names []string
	for _, st := range w.Standings(orders(), w.now) {
		for _, o := range st.Owners {
			names = append(names, o.Kind.String()+" "+o.Agent)
		}
	}
	return strings.Join(names, ", ")
}

// TestAgentOfOwner: the latest registration's name counts; a beat of one without a
// name asks for it.
func TestAgentOfOwner(t *testing.T) {
	w := newWorld(t)
	k := at("10.0.0.1", 80)
	register := func(owner Owner, agent string) {
		w.must(&Register{Meta: w.meta(), Service: orders(), Owner: owner, Agent: agent, Instance: Instance{
			IP: k.IP, Port: k.Port, Cluster: k.Cluster, Weight: 1, Healthy: true, Enabled: true,
		}})
	}
	beat := func() BeatState { return w.Beat(&Beat{Meta: w.meta(), Service: orders(), Instance: k}) }
	for _, step := range []struct {
		name    string
		do      func()
		want    string
		unnamed bool
	}{
		{"registered", func() { register(httpOwner, "java 1") }, "http java 1", false},
		{"again by another", func() { register(httpOwner, "java 2") }, "http java 2", false},
		{"introduced, but it is known", func() { w.Introduce(orders(), k, "go") }, "http java 2", false},
		{"again without a name", func() { register(httpOwner, "") }, "http ", true},
		{"introduced by no name", func() { w.Introduce(orders(), k, "") }, "http ", true},
		{"introduced", func() { w.Introduce(orders(), k, "go") }, "http go", false},
		{"a durable owner besides", func() { register(durableOwner, "python") }, "durable , http go", false},
		{"who is not there", func() { w.Introduce(orders(), at("10.0.0.2", 80), "go") }, "durable , http go", false},
	} {
		step.do()
		if got, state := agentsOf(w), beat(); got != step.want || state.Unnamed != step.unnamed {
			t.Errorf("%s: got %q, unnamed %v; want %q, %v", step.name, got, state.Unnamed, step.want, step.unnamed)
		}
	}
	names := map[string]bool{}
	w.EachHolding(func(h Holding) { names[h.Owner.Kind.String()+" "+h.Agent] = true })
	if len(names) != 2 || !names["http go"] || !names["durable "] {
		t.Errorf("holdings show %v", names)
	}
}

// TestBeatOfConnection: what a connection keeps alive has no HTTP client to name.
func TestBeatOfConnection(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.register(connection("c1"), at("10.0.0.1", 80))
	state := w.Beat(&Beat{Meta: w.meta(), Service: orders(), Instance: at("10.0.0.1", 80)})
	if !state.Known || state.Unnamed {
		t.Errorf("got %+v", state)
	}
}

func TestAgentsAreBounded(t *testing.T) {
	var a agents
	long := strings.Repeat("x", maxAgentText-1) + "é"
	if got := a.text(a.number(long)); got != long[:maxAgentText-1] {
		t.Errorf("a long name is kept as %d bytes %q", len(got), got)
	}
	first := a.number("java")
	for n := range maxAgents {
		a.number(fmt.Sprint(n))
	}
	if got := a.number("one more"); got != otherAgent || a.text(got) != "" {
		t.Errorf("one too many: got %d %q", got, a.text(got))
	}
	if got := a.number("java"); got != first || a.text(got) != "java" {
		t.Errorf("a known one: got %d %q, want %d", got, a.text(got), first)
	}
	if n := len(a.known.Load().texts); n != maxAgents {
		t.Errorf("%d names are kept, want %d", n, maxAgents)
	}
	if got := testing.AllocsPerRun(100, func() { a.number("java"); a.number("one more") }); got > 0 {
		t.Errorf("%v allocations to number a known name and one too many, want 0", got)
	}
}

// TestAgentsConcurrently: names keep their numbers while others are added.
func TestAgentsConcurrently(t *testing.T) {
	var a agents
	var adding sync.WaitGroup
	for g := range 4 {
		adding.Go(func() {
			for n := range 100 {
				text := fmt.Sprint((n + g*7) % 100)
				if got := a.text(a.number(text)); got != text {
					t.Errorf("%s became %q", text, got)
				}
			}
		})
	}
	adding.Wait()
	if n := len(a.known.Load().texts); n != 100 {
		t.Errorf("%d names, want 100", n)
	}
}

func TestRecalled(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("open")
	w.RecallClient("away")
	for id, want := range map[ClientID]bool{"open": false, "away": true, "nobody": false} {
		if got := w.Recalled(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	w.must(&CloseClient{Meta: w.meta(), Client: "away"})
	if w.Recalled("away") {
		t.Error("a closed one is remembered")
	}
}
