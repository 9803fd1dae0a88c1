package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// listing is the answer to a look-up, in a list answer or a UDP packet.
type listing struct {
	view        *registry.View
	hosts       encodedHosts
	grouped     bool // dom carries the group
	cacheMillis int64
	clusters    string // as asked for: clients key their cache by it
	env         string
}

// beforeHosts is what a list begins with, if there are candidates.
const beforeHosts = `{"hosts":`

// append appends the listing as JSON. A service without any candidate has its
// empty hosts in another place (shape B of 1.x).
func (l *listing) append(b []byte) []byte {
	if l.hosts.array != nil {
		b = append(b, beforeHosts...)
		return l.appendBehindHosts(append(b, l.hosts.array...))
	}
	b = l.appendSettings(append(b, '{'))
	b = append(b, `,"hosts":[],"metadata":`...)
	b = l.view.Info.Metadata.AppendJSON(b)
	return append(b, '}')
}

// appendBehindHosts appends what follows the hosts of candidates.
func (l *listing) appendBehindHosts(b []byte) []byte {
	b = l.appendSettings(append(b, ','))
	b = append(b, `,"metadata":`...)
	b = l.view.Info.Metadata.AppendJSON(b)
	return append(b, '}')
}

// size is about the length of what append appends.
func (l *listing) size() int {
	const fixed = 200
	return fixed + len(l.hosts.array) + 2*len(l.view.Grouped) + len(l.clusters) + len(l.env) + len(l.view.Info.Metadata)
}

func (l *listing) appendSettings(b []byte) []byte {
	b = append(b, `"dom":`...)
	if l.grouped {
		b = registry.AppendJSONString(b, l.view.Grouped)
	} else {
		b = registry.AppendJSONString(b, plainName(l.view.Key))
	}
	b = append(b, `,"name":`...)
	b = registry.AppendJSONString(b, l.view.Grouped)
	b = append(b, `,"cacheMillis":`...)
	b = strconv.AppendInt(b, l.cacheMillis, 10)
	b = append(b, `,"lastRefTime":`...)
	b = strconv.AppendInt(b, l.view.Revision, 10)
	b = append(b, `,"checksum":"`...)
	b = append(b, l.hosts.checksum...)
	b = append(b, `","useSpecifiedURL":false,"clusters":`...)
	b = registry.AppendJSONString(b, l.clusters)
	b = append(b, `,"env":`...)
	return registry.AppendJSONString(b, l.env)
}

// appendMissing appends the answer to a look-up of a service that is not there
// (shape C of 1.x).
func appendMissing(b []byte, key registry.ServiceKey, clusters string, cacheMillis int64) []byte {
	b = append(b, `{"name":`...)
	b = appendGrouped(b, key)
	b = append(b, `,"clusters":`...)
	b = registry.AppendJSONString(b, clusters)
	b = append(b, `,"cacheMillis":`...)
	b = strconv.AppendInt(b, cacheMillis, 10)
	return append(b, `,"hosts":[]}`...)
}

// Payload returns what a UDP packet tells a subscriber of a service: the list
// that its own look-up would get, in memory that the caller owns. view is nil
// when the service is gone. A disabled service is told without hosts, which
// clients ignore.
func (a *API) Payload(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte {
	cacheMillis := a.core.Store().Switches().DefaultPushCacheMillis
	switch {
	case view == nil:
		return appendMissing(nil, key, sub.Clusters, cacheMillis)
	case view.Info.Disabled:
		return appendDisabled(nil, view, cacheMillis)
	}
	f := form{grouped: httpapi.ParseAgent(sub.Agent, "").GroupedNames()}
	f.inClusters(view, sub.Clusters)
	l := listing{
		view: view, hosts: a.hostsOf(view, f), grouped: f.grouped,
		cacheMillis: cacheMillis, clusters: sub.Clusters,
	}
	return l.append(make([]byte, 0, l.size()))
}

// appendDisabled appends what 1.4.8 pushes when it cannot answer for a service.
func appendDisabled(b []byte, view *registry.View, cacheMillis int64) []byte {
	b = append(b, `{"name":`...)
	b = registry.AppendJSONString(b, view.Grouped)
	b = append(b, `,"lastRefTime":`...)
	b = strconv.AppendInt(b, view.Revision, 10)
	b = append(b, `,"cacheMillis":`...)
	b = strconv.AppendInt(b, cacheMillis, 10)
	return append(b, '}')
}
