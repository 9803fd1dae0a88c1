package admission

import (
	"net/netip"
	"testing"
)

const (
	ofAll     = "too many connections: the server serves at most 2"
	ofAddress = "too many connections from this address: at most 2"
)

func TestGate(t *testing.T) {
	g := New(2, 2)
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	from := func(ip netip.Addr) func() *Refusal { return func() *Refusal { return g.EnterFrom(ip) } }
	for i, step := range []struct {
		do   string
		got  func() *Refusal
		want string
	}{
		{"enter", g.Enter, ""},
		{"enter", g.Enter, ""},
		{"enter", g.Enter, ofAll},
		{"leave", func() *Refusal { g.Leave(); return g.Enter() }, ""},
		{"from here", from(here), ""},
		{"from here", from(here), ""},
		{"from here", from(here), ofAddress},
		{"from there", from(there), ""},
		{"from nowhere", from(netip.Addr{}), ""},
		{"from nowhere", from(netip.Addr{}), ""},
		{"from nowhere", from(netip.Addr{}), ""},
		{"one leaves", func() *Refusal { g.LeaveFrom(here); return g.EnterFrom(here) }, ""},
	} {
		text := ""
		if r := step.got(); r != nil {
			text = r.Error()
		}
		if text != step.want {
			t.Errorf("step %d, %s: %q, want %q", i, step.do, text, step.want)
		}
	}
	if inAll, ofOne := g.Refused(); inAll != 1 || ofOne != 1 || g.Connections() != 2 {
		t.Errorf("refused %d and %d, connections %d", inAll, ofOne, g.Connections())
	}
}

// A refusal leaves nothing counted, limits change for those to come, and what left is
// forgotten.
func TestAdmit(t *testing.T) {
	g := New(0, 1)
	ip := netip.MustParseAddr("::1")
	if r := g.Admit(ip); r != nil {
		t.Fatal(r)
	}
	if r := g.Admit(ip); r == nil || !r.OfAddress || r.Limit != 1 || g.Connections() != 1 {
		t.Fatalf("%v, %d connections", r, g.Connections())
	}
	g.Limit(0, 0)
	if r := g.Admit(ip); r != nil {
		t.Fatal(r)
	}
	g.Release(ip)
	g.Release(ip)
	if g.Connections() != 0 || len(g.from) != 0 {
		t.Errorf("%d connections, %v", g.Connections(), g.from)
	}
}

func TestRefusalsAreFew(t *testing.T) {
	g := New(1, 1)
	for g.StartRefusing() {
	}
	if g.Refusing() != maxRefusing {
		t.Errorf("%d refusals at once", g.Refusing())
	}
	g.StopRefusing()
	if !g.StartRefusing() {
		t.Error("a refusal that has ended counts")
	}
}
