package rollcall

import (
	"cmp"
	"slices"
	"strings"
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
	empty     []byte      // the list that says so, while held
	instances []*Instance // sorted
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
	instances, err := readInstances(list.Raw, &info, v.instances)
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
		protected: info.Protected, instances: instances,
	}
	if len(instances) == 0 && len(v.instances) > 0 && protection > 0 && !(v.held && now.Sub(v.heldSince) >= protection) {
		next.held, next.heldSince, next.empty = true, now, list.Raw
		next.instances, next.protected = v.instances, v.protected
		if v.held {
			next.heldSince = v.heldSince
		}
	}
	return next, taken, nil
}

// fromDisk returns the view of a list that was kept on disk.
func (v *view) fromDisk(raw []byte, at time.Time) (*view, error) {
	var info grpcv2.ServiceInfo
	instances, err := readInstances(raw, &info, v.instances)
	if err != nil {
		return nil, err
	}
	return &view{disk: true, at: at, applied: v.applied, protected: info.Protected, instances: instances}, nil
}

// readInstances reads the hosts of a list, sorted. Those that are equal to one of
// before, which is sorted too, are that one, so that nothing is kept twice and
// differences are found by comparing pointers.
func readInstances(raw []byte, info *grpcv2.ServiceInfo, before []*Instance) ([]*Instance, error) {
	hosts := make([]grpcv2.Host, 0, len(before))
	err := grpcv2.ReadServiceInfo(raw, info, func(h *grpcv2.Host) {
		if h.Cluster == "" {
			h.Cluster = DefaultCluster
		}
		hosts = append(hosts, *h)
	})
	if err != nil {
		return nil, err
	}
	words := make(map[string]string)
	instances := make([]*Instance, 0, len(hosts))
	for _, n := range sorted(hosts) {
		h := &hosts[n]
		for len(before) > 0 && before[0].before(h) {
			before = before[1:]
		}
		if len(before) > 0 && before[0].is(h) {
			instances = append(instances, before[0])
		} else {
			instances = append(instances, newInstance(h, words))
		}
	}
	return instances, nil
}

// sorted returns the order of the hosts: numbers, since hosts are long. Of those that
// are the same instance it has the last one only.
func sorted(hosts []grpcv2.Host) []int32 {
	byKey := func(m, n int32) int {
		a, b := &hosts[m], &hosts[n]
		return compareKeys(a.IP, b.IP, a.Port, b.Port, a.Cluster, b.Cluster)
	}
	order := make([]int32, len(hosts))
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortFunc(order, func(m, n int32) int {
		if c := byKey(m, n); c != 0 {
			return c
		}
		return cmp.Compare(m, n)
	})
	kept := order[:0]
	for n, at := range order {
		if n+1 == len(order) || byKey(at, order[n+1]) != 0 {
			kept = append(kept, at)
		}
	}
	return kept
}

// before reports whether an instance sorts before a host.
func (i *Instance) before(h *grpcv2.Host) bool {
	return compareKeys(i.IP, h.IP, int32(i.Port), h.Port, i.Cluster, h.Cluster) < 0
}

// is reports whether a host is the same as an instance in all that can be seen.
func (i *Instance) is(h *grpcv2.Host) bool {
	if i.IP != h.IP || int32(i.Port) != h.Port || i.Cluster != h.Cluster || i.ID != string(h.ID) ||
		i.Weight != h.Weight || i.Healthy != h.Healthy || i.Enabled != h.Enabled || i.Ephemeral != h.Ephemeral {
		return false
	}
	entries, same := 0, true
	grpcv2.EachMetadata(h.Metadata, func(k, v string) bool {
		have, ok := i.Metadata[k]
		same = ok && have == v
		entries++
		return same
	})
	return same && entries == len(i.Metadata)
}

// newInstance makes an instance that shares no memory with the host. words are strings
// that many instances have in common.
func newInstance(h *grpcv2.Host, words map[string]string) *Instance {
	word := func(s string) string {
		if w, ok := words[s]; ok {
			return w
		}
		w := strings.Clone(s)
		words[w] = w
		return w
	}
	i := &Instance{
		ID: string(h.ID), IP: strings.Clone(h.IP), Port: uint16(h.Port), Weight: h.Weight,
		Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral, Cluster: word(h.Cluster),
	}
	grpcv2.EachMetadata(h.Metadata, func(k, v string) bool {
		if i.Metadata == nil {
			i.Metadata = make(map[string]string)
		}
		i.Metadata[word(k)] = word(v)
		return true
	})
	return i
}
