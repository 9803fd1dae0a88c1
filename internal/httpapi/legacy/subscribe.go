package legacy

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// pollMillis is the poll period of 0.9, while no operator has set another.
// Source: Nacos 0.9.0 SwitchDomain.
const pollMillis = 10_000

// cacheMillis is the poll period that a client of 0.9 is told.
func (a *API) cacheMillis(s *registry.Switches) int64 {
	if s.DefaultCacheMillis == a.untouched.DefaultCacheMillis {
		return pollMillis
	}
	return s.DefaultCacheMillis
}

// Form is the [registry.Subscriber.Form] of those whose packets come from
// [API.Payload].
const Form = "0.9"

// subscribe makes a client that wants packets and may have them a subscriber, and
// returns the poll period that it is told. One whose address is not its own is told
// the short one of 1.x.
func (a *API) subscribe(x *httpapi.Exchange, q *lookup.Query) (int64, error) {
	outcome, err := q.Subscribe(x, a.core, a.admit, Form, cause(x, "srvIPXT"))
	if err != nil {
		return 0, err
	}
	s := a.core.Store().Switches()
	switch outcome {
	case lookup.Pushed:
		return s.DefaultPushCacheMillis, nil
	case lookup.Refused:
		return s.DefaultCacheMillis, nil
	default:
		return a.cacheMillis(s), nil
	}
}

// Payload returns what a UDP packet tells a subscriber that srvIPXT made: the
// answer to its look-up, in memory that the caller owns. It has no grouped name, by
// which some clients would file it where they do not look. view is nil when the
// service is gone. A disabled service is told without hosts, which clients ignore.
func (a *API) Payload(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte {
	millis := a.core.Store().Switches().DefaultPushCacheMillis
	if view != nil && !view.Info.Disabled {
		return a.appendLookup(nil, view, &lookup.Query{Clusters: sub.Clusters}, clusterNames(sub.Clusters), millis)
	}
	b := append([]byte(nil), `{"dom":`...)
	b = registry.AppendJSONString(b, shown(key))
	b = append(b, `,"cacheMillis":`...)
	b = strconv.AppendInt(b, millis, 10)
	if view == nil {
		b = append(b, `,"clusters":`...)
		b = registry.AppendJSONString(b, sub.Clusters)
		b = append(b, `,"hosts":[]`...)
	}
	return append(b, '}')
}
