package v1

import (
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// catalogInstances answers GET /catalog/instances: a page of a cluster's
// instances with all that is known of them, disabled ones too. Health is what
// each has, whatever a list would show under the protect threshold.
func (a *API) catalogInstances(x *httpapi.Exchange) {
	p := x.Params()
	key, err := boundService(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	cluster, err := p.Bound("clusterName")
	if err != nil {
		a.fail(x, err)
		return
	}
	number, size, err := boundPage(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	page, err := newPage(number, size)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key)
	if err != nil {
		a.fail(x, err)
		return
	}
	if view.Cluster(cluster) == nil {
		a.fail(x, registry.Refuse(registry.ClusterNotFound, "clusterName", cluster, "cluster %s is not found!", cluster))
		return
	}
	x.Scratch = a.appendCatalogPage(x.Scratch[:0], view, cluster, page)
	x.JSON(200, x.Scratch)
}

// appendCatalogPage appends the instances of a cluster that are on the page, and
// how many there are.
func (a *API) appendCatalogPage(b []byte, view *registry.View, cluster string, page page) []byte {
	now := a.core.Now()
	var rows []catalogRow
	for _, s := range a.core.Store().Standings(view.Key, now) {
		if s.Instance.Cluster == cluster {
			rows = appendRows(rows, s, view, now)
		}
	}
	from, to := page.of(len(rows))
	b = append(b, `{"list":[`...)
	for n := range rows[from:to] {
		if n > 0 {
			b = append(b, ',')
		}
		b = rows[from+n].append(b, view.Grouped)
	}
	b = append(b, `],"count":`...)
	b = strconv.AppendInt(b, int64(len(rows)), 10)
	return append(b, '}')
}

// catalogRow is one registration as the catalog shows it.
type catalogRow struct {
	*registry.Instance
	ephemeral, healthy bool
	lastBeat           int64 // milliseconds since the epoch
}

// appendRows appends the row of an instance. One that is registered in both kinds
// has a row of each: a look-up shows it once, whoever looks after it sees by whom
// it is kept (recorded: put-kind).
func appendRows(rows []catalogRow, s registry.Standing, view *registry.View, now registry.Instant) []catalogRow {
	// Of an instance without beats nothing is known but that it is as old as the
	// latest change of its service, or older.
	row := catalogRow{Instance: s.Instance, lastBeat: view.Revision}
	if s.SinceBeat >= 0 {
		row.lastBeat = now.Wall - s.SinceBeat.Milliseconds()
	}
	var durable, ephemeral, durableHealth, ephemeralHealth bool
	for _, h := range s.Owners {
		if h.Kind == registry.OwnerDurable {
			durable, durableHealth = true, h.Healthy
		} else {
			ephemeral, ephemeralHealth = true, ephemeralHealth || h.Healthy
		}
	}
	if !durable || !ephemeral {
		row.ephemeral, row.healthy = ephemeral, s.Instance.Healthy
		return append(rows, row)
	}
	row.healthy = durableHealth
	rows = append(rows, row)
	row.ephemeral, row.healthy = true, ephemeralHealth
	return append(rows, row)
}

// defaultBeatInterval is shown of an instance that asks for none of its own.
// Source: Nacos Constants.DEFAULT_HEART_BEAT_INTERVAL.
const defaultBeatInterval = 5 * time.Second

// defaultIDGenerator is shown of an instance without metadata. Source: Nacos
// Constants.DEFAULT_INSTANCE_ID_GENERATOR.
const defaultIDGenerator = "simple"

func (r *catalogRow) append(b []byte, grouped string) []byte {
	i := r.Instance
	b = append(b, `{"instanceId":`...)
	b = appendInstanceID(b, i, grouped)
	b = append(b, `,"ip":`...)
	b = registry.AppendJSONString(b, i.IP)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, `,"weight":`...)
	b = appendDouble(b, i.Weight)
	b = append(b, `,"healthy":`...)
	b = strconv.AppendBool(b, r.healthy)
	b = append(b, `,"enabled":`...)
	b = strconv.AppendBool(b, i.Enabled)
	b = append(b, `,"ephemeral":`...)
	b = strconv.AppendBool(b, r.ephemeral)
	b = append(b, `,"clusterName":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"serviceName":`...)
	b = registry.AppendJSONString(b, grouped)
	b = append(b, `,"metadata":`...)
	b = i.Metadata.AppendJSON(b)
	b = append(b, `,"lastBeat":`...)
	b = strconv.AppendInt(b, r.lastBeat, 10)
	b = append(b, `,"marked":`...)
	b = strconv.AppendBool(b, i.Marked)
	if i.App != "" { // beats register without one
		b = append(b, `,"app":`...)
		b = registry.AppendJSONString(b, i.App)
	}
	b = appendBeatTimes(b, i)
	return append(b, '}')
}

// appendBeatTimes appends what an instance asks for in its metadata. The ID
// generator is shown when it is named, and when there is no metadata at all.
func appendBeatTimes(b []byte, i *registry.Instance) []byte {
	interval := defaultBeatInterval
	if asked := i.BeatTimes().Interval; asked > 0 {
		interval = asked
	}
	b = append(b, `,"instanceHeartBeatInterval":`...)
	b = strconv.AppendInt(b, interval.Milliseconds(), 10)
	generator, named := i.Metadata.Get(registry.KeyIDGenerator)
	if i.Metadata == "" {
		generator, named = defaultIDGenerator, true
	}
	if named {
		b = append(b, `,"instanceIdGenerator":`...)
		b = registry.AppendJSONString(b, generator)
	}
	b = append(b, `,"instanceHeartBeatTimeOut":`...)
	b = strconv.AppendInt(b, i.BeatTimeout().Milliseconds(), 10)
	b = append(b, `,"ipDeleteTimeout":`...)
	return strconv.AppendInt(b, i.DeleteTimeout().Milliseconds(), 10)
}
