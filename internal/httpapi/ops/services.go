package ops

import (
	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// maxServices is the largest page of services.
const maxServices = 10_000

// services answers GET /rollcall/v1/services: namespace, group (all when absent),
// offset, limit.
func (a *API) services(x *httpapi.Exchange) {
	p := x.Params()
	offset, err := number(p, "offset", 0, 1<<31)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	limit, err := number(p, "limit", 0, maxServices)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	if limit == 0 {
		limit = 1000
	}
	reader := a.cfg.Naming.Store()
	namespace := registry.NamespaceID(p.Optional("namespace", ""))
	keys, total := reader.Services(namespace, p.Optional("group", ""), int(offset), int(limit))
	out := opsv1.Services{Services: make([]opsv1.ServiceSummary, 0, len(keys)), Total: total}
	for _, key := range keys {
		view := reader.View(key)
		if view == nil {
			continue // gone since the list was made
		}
		s := opsv1.ServiceSummary{
			Service: wireService(key), Instances: len(view.Instances), Threshold: view.Info.ProtectThreshold,
			Subscribers: len(reader.Subscribers(key)), Held: reader.Held(key),
		}
		for _, i := range view.Instances {
			if i.Healthy {
				s.Healthy++
			}
		}
		out.Services = append(out.Services, s)
	}
	answer(x, out)
}
