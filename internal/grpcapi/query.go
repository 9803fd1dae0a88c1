package grpcapi

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// text returns bytes as a string without copying them.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// query answers ServiceQueryRequest. A service that is not there has no hosts, and
// neither has one without a name.
func (x *call) query() error {
	q, err := grpcv2.DecodeQuery(x.Body)
	if err != nil {
		return decoded(err)
	}
	if err := checkLookup(&q.Service, q.Clusters.Value); err != nil {
		return err
	}
	tail, err := x.client.api.lookup(keyOf(&q.Service), q.Clusters.Value, q.HealthyOnly)
	if err != nil {
		return err
	}
	// Other than to a subscriber, no clusters are echoed as an empty text.
	head := x.head(&q.Service, grpcv2.Optional{Value: q.Clusters.Value, Given: true})
	x.answer.Type, x.answer.Tail = x.route.response, tail
	x.answer.Buf = grpcv2.AppendQueryHead(x.answer.Buf, &head)
	return nil
}

// checkLookup makes the checks of a request that looks into a service.
func checkLookup(s *grpcv2.Service, clusters string) error {
	if err := checkService(s); err != nil {
		return err
	}
	if len(clusters) > maxClusters {
		return registry.Refuse(registry.RefusedName, "cluster", "", "Param 'cluster' is illegal, the param length should not exceed %d.", maxClusters)
	}
	for name := range strings.SplitSeq(clusters, ",") {
		if err := registry.CheckClusterV2(trimBlank(name)); err != nil {
			return err
		}
	}
	return nil
}

// maxClusters bounds a list of clusters, in bytes; subscriptions keep theirs.
const maxClusters = 8 << 10

// head returns the part of an answer that is the asker's own.
func (x *call) head(s *grpcv2.Service, clusters grpcv2.Optional) grpcv2.ServiceHead {
	return grpcv2.ServiceHead{
		Name: s.Name, Group: s.Group, Clusters: clusters,
		CacheMillis: x.client.api.core.Store().Switches().DefaultPushCacheMillis, Newer: x.who.newer,
	}
}

// list answers ServiceListRequest: the services of one group, of whose pages the
// first is 1. A group without a name has none.
func (x *call) list() error {
	q, err := grpcv2.DecodeList(x.Body)
	if err != nil {
		return decoded(err)
	}
	if err := checkService(&q.Service); err != nil {
		return err
	}
	var keys []registry.ServiceKey
	var total int
	if group := q.Group.Value; group != "" {
		offset := (int64(q.PageNo) - 1) * int64(q.PageSize)
		keys, total = x.client.api.core.Store().Services(registry.NamespaceID(q.Namespace), group,
			int(min(max(offset, 0), math.MaxInt32)), int(max(q.PageSize, 0)))
	}
	if fault := pageFault(q.PageNo, q.PageSize, total); fault != "" {
		x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError, fault)
		return nil
	}
	names := make([]string, len(keys))
	for n, k := range keys {
		names[n] = k.Name
	}
	x.answer.Type = x.route.response
	x.answer.Buf = grpcv2.AppendServices(x.answer.Buf, total, names)
	return nil
}

// pageFault says what is wrong with a page whose end is before its beginning, in
// the words of the original (recorded: service-list-pages).
func pageFault(number, size int32, total int) string {
	from := max((int64(number)-1)*int64(size), 0)
	to := min(from+int64(size), int64(total))
	if from >= int64(total) || from <= to {
		return ""
	}
	return fmt.Sprintf("fromIndex(%d) > toIndex(%d)", from, to)
}

// form is everything that shapes the hosts of an answer or a push.
type form struct {
	healthyOnly bool
	// clusters are those of the view that are asked for, each once and sorted; nil
	// means all.
	clusters []string
	// nowhere: clusters are asked for, and the view has none of them.
	nowhere bool
}

// formOf narrows a look-up to the clusters that a text names, separated by commas.
// A text without any name means all.
func formOf(view *registry.View, clusters string, healthyOnly bool) form {
	f := form{healthyOnly: healthyOnly}
	if clusters == "" {
		return f
	}
	named := false
	for name := range strings.SplitSeq(clusters, ",") {
		named = named || !isBlank(name)
		if c := view.Cluster(name); c != nil {
			f.clusters = append(f.clusters, c.Name)
		}
	}
	slices.Sort(f.clusters)
	f.clusters = slices.Compact(f.clusters)
	f.nowhere = named && len(f.clusters) == 0
	if len(f.clusters) == len(view.Clusters) {
		f.clusters = nil // all there is: one form for both ways to ask
	}
	return f
}

// key names the form among the wire forms of a view.
func (f *form) key() string {
	kind := "grpc"
	if f.healthyOnly {
		kind = "grpc healthy"
	}
	switch {
	case f.nowhere:
		return "grpc nobody"
	case f.clusters != nil:
		return kind + " in " + strings.Join(f.clusters, ",")
	default:
		return kind
	}
}

// lookup returns the end of an answer that tells who is in a service. The bytes
// are shared.
func (a *API) lookup(key registry.ServiceKey, clusters string, healthyOnly bool) ([]byte, error) {
	view, err := a.core.View(key)
	switch {
	case err != nil:
		return nil, err
	case view == nil:
		return absent(a.core.AbsentRevision()), nil
	default:
		return a.tail(view, clusters, healthyOnly), nil
	}
}

// absent returns the end of a message about a service that is not there.
func absent(revision int64) []byte {
	return grpcv2.AppendServiceTail(nil, grpcv2.ServiceTail{LastRefTime: revision}, nil)
}

// tail returns the end of a message about a view, which is encoded once for all
// who ask alike. The bytes are shared.
func (a *API) tail(view *registry.View, clusters string, healthyOnly bool) []byte {
	f := formOf(view, clusters, healthyOnly)
	return a.encoder.Encode(view, f.key(), func(b []byte) []byte { return f.encode(b, view) })
}

func (f *form) encode(b []byte, view *registry.View) []byte {
	t := grpcv2.ServiceTail{LastRefTime: view.Revision}
	if f.nowhere {
		return grpcv2.AppendServiceTail(b, t, nil)
	}
	sel := registry.Select(view, registry.Query{Clusters: f.clusters, HealthyOnly: f.healthyOnly, Policy: registry.PolicyV2})
	t.Protected = sel.Protected
	b = slices.Grow(b, hostsLen(sel.Instances, view.Grouped))
	return grpcv2.AppendServiceTail(b, t, func(b []byte) []byte {
		var id []byte
		for n, i := range sel.Instances {
			if n > 0 {
				b = append(b, ',')
			}
			h := hostOf(i, sel.Healthy(i), view.Grouped)
			if !i.HideID {
				id = i.AppendID(id[:0], view.Grouped)
				h.ID = id
			}
			b = grpcv2.AppendHost(b, &h)
		}
		return b
	})
}

// hostsLen is about the length of the encoded instances.
func hostsLen(list []*registry.Instance, grouped string) int {
	const fixed = 330 // names of the members, flags, numbers
	n := len(list)*(fixed+2*len(grouped)) + 100
	for _, i := range list {
		n += 2*len(i.IP) + 2*len(i.Cluster) + len(i.Metadata)
	}
	return n
}

func hostOf(i *registry.Instance, healthy bool, grouped string) grpcv2.Host {
	h := grpcv2.Host{
		IP: i.IP, Port: i.Port, Cluster: i.Cluster, Service: grouped, Metadata: i.Metadata.JSON(), Weight: i.Weight,
		Healthy: healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
		BeatIntervalMillis:  i.BeatInterval().Milliseconds(),
		BeatTimeoutMillis:   i.BeatTimeout().Milliseconds(),
		DeleteTimeoutMillis: i.DeleteTimeout().Milliseconds(),
	}
	// As recorded: an instance with metadata has the generator that it names, one
	// without has the default.
	if i.Metadata == "" {
		h.IDGenerator = "simple"
	} else {
		h.IDGenerator, _ = i.Metadata.Get(registry.KeyIDGenerator)
	}
	return h
}
