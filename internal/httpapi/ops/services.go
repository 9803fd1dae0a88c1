package ops

import (
	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The sizes of a page of a list.
const (
	pageLimit = 1000
	maxPage   = 10_000
)

// services answers GET /rollcall/v1/services: namespace, group (all when absent),
// offset, limit.
func (a *API) services(x *httpapi.Exchange) {
	p := x.Params()
	offset, limit, err := window(p)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	reader := a.cfg.Naming.Store()
	namespace := registry.NamespaceID(p.Optional("namespace", ""))
	keys, total := reader.Services(namespace, p.Optional("group", ""), offset, limit)
	out := opsv1.Services{Services: make([]opsv1.ServiceSummary, 0, len(keys)), Total: total}
	for _, key := range keys {
		view := reader.View(key)
		if view == nil {
			continue // gone since the list was made
		}
		out.Services = append(out.Services, opsv1.ServiceSummary{
			Service: wireService(key), Instances: len(view.Instances), Healthy: healthy(view.Instances),
			Subscribers: reader.CountSubscribers(key), Threshold: view.Info.ProtectThreshold, Held: reader.Held(key),
		})
	}
	a.answer(x, out)
}

func healthy(instances []*registry.Instance) int {
	n := 0
	for _, i := range instances {
		if i.Healthy {
			n++
		}
	}
	return n
}

// instances answers GET /rollcall/v1/instances: service, group, namespace,
// cluster (all when absent), offset, limit.
func (a *API) instances(x *httpapi.Exchange) {
	p := x.Params()
	key := service(p)
	if key.Name == "" {
		refuse(x, 400, "service: say of which service")
		return
	}
	offset, limit, err := window(p)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	reader := a.cfg.Naming.Store()
	if reader.View(key) == nil {
		refuse(x, 404, "there is no service "+key.Grouped()+" in namespace "+key.Namespace)
		return
	}
	out := opsv1.Instances{Service: wireService(key), ExpiryHeld: reader.Held(key), Instances: []opsv1.InstanceState{}}
	cluster, named := p.Optional("cluster", ""), a.agents()
	for _, st := range reader.Standings(key, a.cfg.Naming.Now()) {
		if cluster != "" && st.Instance.Cluster != cluster {
			continue
		}
		if out.Total >= offset && len(out.Instances) < limit {
			state := wireStanding(&st)
			named.name(&state)
			out.Instances = append(out.Instances, state)
		}
		out.Total++
	}
	a.answer(x, out)
}
