package rollcall

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// listed are the instances of a list. They are immutable.
type listed struct {
	instances []*Instance // sorted, no two with one key
	// places has for each host of the list, in the order in which they came, where its
	// instance is; nil if hosts had one key. Servers keep their order, so that most
	// hosts of the next list come at the same place.
	places []int32
}

// readInstances reads the hosts of a list. Those that are equal to one of the list before
// are that one, so that nothing is kept twice and differences are found by comparing
// pointers.
func readInstances(raw []byte, info *grpcv2.ServiceInfo, before listed) (listed, error) {
	r := reading{
		before: before, instances: make([]*Instance, 0, len(before.instances)),
		words: make(map[string]string), metadata: make(map[string]map[string]string),
	}
	if err := grpcv2.ReadServiceInfo(raw, info, r.host); err != nil {
		return listed{}, err
	}
	if !r.moved && r.at == len(before.places) {
		return r.inPlace(), nil
	}
	return sorted(r.instances), nil
}

// reading makes instances of the hosts of a list, in the order in which they come.
type reading struct {
	before    listed
	at        int         // the place in the list before at which the next host is looked for
	moved     bool        // hosts have come that are not at the same place as before
	instances []*Instance // so far

	// What many instances have in common is kept once. The keys of metadata are parts of
	// the list.
	words    map[string]string
	metadata map[string]map[string]string
}

func (r *reading) host(h *grpcv2.Host) {
	if h.Cluster == "" {
		h.Cluster = DefaultCluster
	}
	in := r.find(h)
	if in == nil || !in.is(h) {
		in = r.newInstance(h, in)
	}
	r.instances = append(r.instances, in)
}

// find returns the instance of the list before that has the key of a host; nil if there
// is none. It looks at the same place first, and at the next, in case one has gone.
func (r *reading) find(h *grpcv2.Host) *Instance {
	for at := r.at; at < min(r.at+2, len(r.before.places)); at++ {
		if in := r.before.instances[r.before.places[at]]; in.names(h) {
			r.moved = r.moved || at != r.at
			r.at = at + 1
			return in
		}
	}
	r.moved = true
	n, ok := slices.BinarySearchFunc(r.before.instances, h, func(in *Instance, h *grpcv2.Host) int {
		return compareKeys(in.IP, h.IP, int32(in.Port), h.Port, in.Cluster, h.Cluster)
	})
	if !ok {
		return nil
	}
	return r.before.instances[n]
}

// inPlace sorts the instances, which came in the same order as before.
func (r *reading) inPlace() listed {
	instances := make([]*Instance, len(r.instances))
	for n, in := range r.instances {
		instances[r.before.places[n]] = in
	}
	return listed{instances, r.before.places}
}

// sorted sorts instances. Of those with one key it keeps the last one.
func sorted(came []*Instance) listed {
	order := make([]int32, len(came))
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortFunc(order, func(m, n int32) int {
		if c := compare(came[m], came[n]); c != 0 {
			return c
		}
		return cmp.Compare(m, n)
	})
	l := listed{make([]*Instance, 0, len(came)), make([]int32, len(came))}
	for n, at := range order {
		if n+1 < len(order) && compare(came[at], came[order[n+1]]) == 0 {
			continue
		}
		l.places[at] = int32(len(l.instances))
		l.instances = append(l.instances, came[at])
	}
	if len(l.instances) < len(came) {
		l.places = nil
	}
	return l
}

// names reports whether a host has the key of an instance.
func (i *Instance) names(h *grpcv2.Host) bool {
	return int32(i.Port) == h.Port && i.IP == h.IP && i.Cluster == h.Cluster
}

// is reports whether a host with the key of an instance is the same in all that can be
// seen.
func (i *Instance) is(h *grpcv2.Host) bool {
	return i.Weight == h.Weight && i.Healthy == h.Healthy && i.Enabled == h.Enabled && i.Ephemeral == h.Ephemeral &&
		i.ID == string(h.ID) && i.hasMetadata(h.Metadata)
}

// hasMetadata reports whether an instance has the metadata of a host.
func (i *Instance) hasMetadata(text string) bool {
	entries, same := 0, true
	grpcv2.EachMetadata(text, func(k, v string) bool {
		have, ok := i.Metadata[k]
		same = ok && have == v
		entries++
		return same
	})
	return same && entries == len(i.Metadata)
}

// newInstance makes an instance that shares no memory with the host. It shares what it
// can with the one of the same key before, which may be nil.
func (r *reading) newInstance(h *grpcv2.Host, before *Instance) *Instance {
	in := &Instance{
		ID: string(h.ID), Port: uint16(h.Port), Weight: h.Weight,
		Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral,
	}
	if before != nil {
		in.IP, in.Cluster = before.IP, before.Cluster
	} else {
		in.IP, in.Cluster = strings.Clone(h.IP), r.word(h.Cluster)
	}
	if before != nil && before.hasMetadata(h.Metadata) {
		in.Metadata = before.Metadata
	} else {
		in.Metadata = r.entries(h.Metadata)
	}
	return in
}

// entries returns the entries of metadata, nil if there are none.
func (r *reading) entries(text string) map[string]string {
	if entries, ok := r.metadata[text]; ok {
		return entries
	}
	var entries map[string]string
	grpcv2.EachMetadata(text, func(k, v string) bool {
		if entries == nil {
			entries = make(map[string]string)
		}
		entries[r.word(k)] = r.word(v)
		return true
	})
	r.metadata[text] = entries
	return entries
}

// word returns a text that shares no memory with the list.
func (r *reading) word(s string) string {
	if w, ok := r.words[s]; ok {
		return w
	}
	w := strings.Clone(s)
	r.words[w] = w
	return w
}
