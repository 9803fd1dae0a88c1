package v1

import (
	"slices"
	"sync"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// lookup is a decoded GET /instance/list.
type lookup struct {
	key         registry.ServiceKey
	clusters    string
	healthyOnly bool
	isCheck     bool
	env, app    string
	udpPort     int    // 0: polls only
	clientIP    string // where packets are wanted
}

func lookupOf(p *httpapi.Params) (lookup, error) {
	key, err := serviceKey(p)
	if err != nil {
		return lookup{}, err
	}
	udpPort, err := p.Int("udpPort", 0)
	if err != nil {
		return lookup{}, err
	}
	return lookup{
		key:         key,
		clusters:    p.Optional("clusters", ""),
		healthyOnly: p.BoolStrict("healthyOnly", false),
		isCheck:     p.BoolStrict("isCheck", false),
		env:         p.Optional("env", ""),
		app:         p.Optional("app", ""),
		udpPort:     udpPort,
		clientIP:    p.Optional("clientIP", ""),
	}, nil
}

// list answers GET /instance/list: who is in a service. With a UDP port it also
// subscribes, whether or not the service is there yet.
func (a *API) list(x *httpapi.Exchange) {
	q, err := lookupOf(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	// The subscription comes before the look-up, so that no change falls between
	// the two unseen.
	cacheMillis, err := a.cacheMillis(x, &q)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.core.View(q.key)
	if err != nil {
		a.fail(x, err)
		return
	}
	if view == nil {
		x.Scratch = appendMissing(x.Scratch[:0], q.key, q.clusters, cacheMillis)
		x.JSON(200, x.Scratch)
		return
	}
	a.answer(x, view, &q, cacheMillis)
}

func (a *API) answer(x *httpapi.Exchange, view *registry.View, q *lookup, cacheMillis int64) {
	f := form{grouped: x.Agent().GroupedNames(), healthyOnly: q.healthyOnly}
	f.inClusters(view, q.clusters)
	l := listing{
		view: view, hosts: a.hostsOf(view, f), grouped: f.grouped,
		cacheMillis: cacheMillis, clusters: q.clusters, env: q.env,
	}
	switch {
	case q.isCheck && l.hosts.array != nil: // recorded: list-ischeck
		x.JSON(200, []byte("{}"))
	case l.size() > largeAnswer:
		memory := a.large.Get().(*largeMemory)
		memory.bytes = l.append(slices.Grow(memory.bytes[:0], l.size()))
		x.JSON(200, memory.bytes)
		x.AfterWrite(memory.release)
	default:
		x.Scratch = l.append(x.Scratch[:0])
		x.JSON(200, x.Scratch)
	}
}

// largeAnswer is from which size on an answer is built in memory of the API's
// pool, in bytes: an exchange gives larger memory up after each request.
const largeAnswer = 60 << 10

// largeMemory is memory for one large answer.
type largeMemory struct {
	bytes   []byte
	release func() // puts it back
}

// newLargeMemory returns a maker of memory that goes back into pool.
func newLargeMemory(pool *sync.Pool) func() any {
	return func() any {
		m := new(largeMemory)
		m.release = func() { pool.Put(m) }
		return m
	}
}

// cacheMillis subscribes a client that wants packets and may have them, and
// returns the poll period that it is told: a long one when it will be pushed to.
func (a *API) cacheMillis(x *httpapi.Exchange, q *lookup) (int64, error) {
	switches := a.core.Store().Switches()
	if q.udpPort <= 0 {
		return switches.DefaultCacheMillis, nil
	}
	verdict := a.push.Judge(PacketRequest{
		ClientIP: q.clientIP, Port: q.udpPort, Peer: x.Client(),
		Eligible: x.Agent().PushEligible(pushVersions(switches)), Switches: switches,
	})
	if !verdict.Subscribe {
		return switches.DefaultCacheMillis, nil
	}
	sub := &registry.Subscriber{
		SubscriberKey: registry.SubscriberKey{Addr: verdict.Target, Agent: x.UserAgent(), Clusters: q.clusters},
		Service:       q.key, Protocol: registry.ProtocolUDP, App: q.app, Refused: verdict.Refused,
	}
	if subscriberLen(sub) > maxSubscriber {
		return switches.DefaultCacheMillis, nil
	}
	if err := a.core.Subscribe(x.Context(), cause(x, "subscribe"), sub); err != nil {
		return 0, err
	}
	if verdict.Refused != "" {
		return switches.DefaultCacheMillis, nil
	}
	return switches.DefaultPushCacheMillis, nil
}

// maxSubscriber bounds the texts of one subscription, in bytes. No service has a
// longer name, and no real client sends a longer agent.
const maxSubscriber = 8 << 10

func subscriberLen(s *registry.Subscriber) int {
	return len(s.Service.Namespace) + len(s.Service.Group) + len(s.Service.Name) +
		len(s.Clusters) + len(s.Agent) + len(s.App)
}

// pushVersions reads the lowest versions that are pushed to.
func pushVersions(s *registry.Switches) httpapi.PushVersions {
	return httpapi.ParsePushVersions(s.PushJavaVersion, s.PushPythonVersion, s.PushCVersion, s.PushGoVersion, s.PushCSharpVersion)
}
