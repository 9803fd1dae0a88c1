package workload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// ErrBehind says that a server may have been right to take instances for gone, since
// the beats for them came too late: nothing is known of what it holds.
var ErrBehind = errors.New("the beats came too late")

// pulse keeps how far apart the beats of each of some senders were: of instances over
// HTTP, of connections over gRPC. Its methods are safe for concurrent use, and for a nil
// pulse, which keeps nothing.
type pulse struct {
	now    func() int64   // nanoseconds
	limit  time.Duration  // without a beat, after which a server may take one for gone
	last   []atomic.Int64 // when the server has answered the last beat of each; 0 before the first
	widest maximum        // nanoseconds between two beats of one
}

// How long a sender may be silent: before it is unhealthy, before it is gone, and a
// connection. Source: Nacos, Constants.DEFAULT_HEART_BEAT_TIMEOUT and
// DEFAULT_IP_DELETE_TIMEOUT, and ConnectionManager.KEEP_ALIVE_TIME.
const (
	usualTimeout  = 15 * time.Second
	deleteTimeout = 30 * time.Second
	silentClients = 20 * time.Second
)

// narrow is the share of the limit from which on a gap counts: when the server took
// note of a beat is known to within its answer only.
const narrow = 0.9

func (e *Env) newPulse(senders int, limit time.Duration) *pulse {
	return &pulse{now: e.now, limit: limit, last: make([]atomic.Int64, senders)}
}

// silence begins now, for instances over HTTP that do not beat at all: it is judged by
// when they are deleted. It is nil over gRPC, where connections do.
func (e *Env) silence() *pulse {
	if e.Config.Protocol != target.HTTP {
		return nil
	}
	p := e.newPulse(1, deleteTimeout)
	p.beaten(0)
	return p
}

// now is the clock of the run.
func (e *Env) now() int64 { return e.Rec.Now() }

// beaten notes that the server has answered a beat of a sender, or its registration.
func (p *pulse) beaten(sender int) {
	if p == nil {
		return
	}
	now := max(p.now(), 1)
	if before := p.last[sender].Swap(now); before != 0 {
		p.widest.take(now - before)
	}
}

// away notes that a sender has left: until its next beat or registration it need not
// beat.
func (p *pulse) away(sender int) {
	if p != nil {
		p.last[sender].Store(0)
	}
}

// judge returns the error of a verification, as [ErrBehind] if a sender was silent for
// so long that it is not the server's.
func (p *pulse) judge(err error) error {
	if err == nil || p == nil || errors.Is(err, ErrBehind) {
		return err
	}
	now := p.now()
	for i := range p.last {
		if last := p.last[i].Load(); last != 0 {
			p.widest.take(now - last)
		}
	}
	gap := time.Duration(p.widest.load())
	if float64(gap) < narrow*float64(p.limit) {
		return err
	}
	return fmt.Errorf("%w: one came %v after the one before, and after %v a server rightly takes an instance for gone (%w); "+
		"ask for fewer instances or a lower rate, or give the generator a core of its own", ErrBehind, gap.Round(100*time.Millisecond), p.limit, err)
}
