package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// moody is a session that answers a registration with err.
type moody struct {
	target.Session
	err error
}

func (m *moody) Register(fleet.Instance) error { return m.err }

// A change that failed may have been done all the same, until one succeeds.
func TestFailedChangeIsUncertain(t *testing.T) {
	e := &Env{Config: Config{Instances: 1}, Rec: load.NewRecorder()}
	session := &moody{}
	p := &publish{
		Env: e, fixture: &fixture{fleet: e.fleet("push", 1, 1, 1)}, publishers: []target.Session{session},
		changes: newChanges(1), answered: e.Rec.Series("answered"), last: make([]int64, 1), uncertain: make([]bool, 1),
	}
	for _, err := range []error{nil, errors.New("no answer in time"), nil} {
		before := p.last[0]
		session.err = err
		if got := p.change(0, 0, before+1); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
		if p.uncertain[0] != (err != nil) || (p.last[0] == before) != (err != nil) {
			t.Errorf("after %v: uncertain %t, revision %d", err, p.uncertain[0], p.last[0])
		}
	}
}

// The units of a fanout wait for all who were told, so there is one at a time.
func TestFanoutIsOneAtATime(t *testing.T) {
	c := Config{Workload: "fanout", Services: 4, Connections: 4}
	if err := c.Complete(new(time.Duration)); err != nil || c.Connections != 1 {
		t.Errorf("%d connections, %v", c.Connections, err)
	}
}

// Each connection of a fill owns an instance, so that each unit is a beat of one.
func TestFillHasNoIdleConnections(t *testing.T) {
	for _, p := range []target.Protocol{target.HTTP, target.GRPC} {
		c := Config{Workload: "fill", Protocol: p, Services: 10, Instances: 3}
		if err := c.Complete(nil); err != nil || c.Connections != 10 {
			t.Errorf("%s: %d connections, %v", p, c.Connections, err)
		}
	}
}

// What an instance takes is told of a server that grew for want of room.
func TestMemoryOfEach(t *testing.T) {
	for _, tt := range []struct{ before, after, want int64 }{
		{20 << 20, 40 << 20, 20 << 20 / 1000}, {400 << 20, 410 << 20, 0}, {400 << 20, 300 << 20, 0}, {0, 40 << 20, 0},
	} {
		var got int64
		for _, f := range each("memory", tt.before, tt.after, 1000) {
			got = int64(f.Value)
		}
		if got != tt.want {
			t.Errorf("from %d to %d: got %d, want %d", tt.before, tt.after, got, tt.want)
		}
	}
}
