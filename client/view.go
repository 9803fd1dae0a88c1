package rollcall

import (
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// view is the state of a service as servers told it. It is immutable, apart from being
// replaced.
type view struct {
	known     bool // a server told it
	disk      bool // or it comes from disk
	at        time.Time
	session   string // which brought it
	refTime   int64  // the server's clock
	applied   uint64 // lists that were taken
	protected bool
	held      bool // the server says that it is empty; see WithEmptyProtection
	heldSince time.Time
	empty     []byte // the list that says so, while held
	listed
}

func (v *view) source() Source {
	switch {
	case v.known:
		return FromServer
	case v.disk:
		return FromDisk
	default:
		return FromNowhere
	}
}

// verdict is what became of a list.
type verdict uint8

const (
	taken   verdict = iota
	stale           // it is older than what is known
	foreign         // it is a push of another session
)

// request is what a list answers.
type request struct {
	// own: the engine asked, and nobody else, as polls of a transport do.
	own bool
	// after is how many lists had been taken when it did.
	after uint64
}

// take decides whether a list is to be believed, and returns the view that it makes.
//
// Times of two sessions are of two clocks and cannot be compared, nor can they with
// the clock of this machine. A session begins with an answer to the client itself; what
// comes from another one before that is not taken. Then what the session pushes is taken
// unless it is older than what it brought before, and answers are taken always, except
// when a push that is newer came while the answer was on its way.
func (v *view) take(list *wire.List, asked request, protection time.Duration) (*view, verdict, error) {
	var info grpcv2.ServiceInfo
	found, err := readInstances(list.Raw, &info, v.listed)
	if err != nil {
		return nil, taken, err
	}
	if !info.HasHosts {
		return nil, taken, errNoHosts
	}
	same := v.known && v.session == list.Session
	older := same && info.LastRefTime < v.refTime
	switch {
	case !asked.own && !same:
		return nil, foreign, nil
	case !list.Asked && older, older && asked.own && v.applied != asked.after && info.LastRefTime != 0:
		return nil, stale, nil
	}
	now := time.Now()
	next := &view{
		known: true, at: now, session: list.Session, refTime: info.LastRefTime, applied: v.applied + 1,
		protected: info.Protected, listed: found,
	}
	if len(found.instances) == 0 && len(v.instances) > 0 && protection > 0 && !(v.held && now.Sub(v.heldSince) >= protection) {
		next.held, next.heldSince, next.empty = true, now, list.Raw
		next.listed, next.protected = v.listed, v.protected
		if v.held {
			next.heldSince = v.heldSince
		}
	}
	return next, taken, nil
}

// fromDisk returns the view of a list that was kept on disk.
func (v *view) fromDisk(raw []byte, at time.Time) (*view, error) {
	var info grpcv2.ServiceInfo
	found, err := readInstances(raw, &info, v.listed)
	switch {
	case err != nil:
		return nil, err
	case !info.HasHosts:
		return nil, errNoHosts
	}
	return &view{disk: true, at: at, applied: v.applied, protected: info.Protected, listed: found}, nil
}
