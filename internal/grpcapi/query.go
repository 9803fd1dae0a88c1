package grpcapi

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/hosts"
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
	return hosts.Select(a.encoder, view, hosts.Filter{Clusters: clusters, HealthyOnly: healthyOnly}).Tail
}
