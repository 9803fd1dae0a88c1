package legacy

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// addIP4Dom lists instances of a service that is there, beside those that it has.
func (a *API) addIP4Dom(x *httpapi.Exchange) {
	p := x.Params()
	list, err := ipListOf(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.domOfIPs(p, list)
	if err != nil {
		a.fail(x, err)
		return
	}
	setPorts(view, list)
	if err := checkIPs(view, list, p.BoolStrict("updateOnly", false)); err != nil {
		a.fail(x, err)
		return
	}
	by := cause(x, "addIP4Dom")
	for _, i := range list {
		if err := a.list(x.Context(), by, view.Key, i); err != nil {
			a.fail(x, err)
			return
		}
	}
	x.OK()
}

// remvIP4Dom takes instances of a service away. What is not there is no error.
func (a *API) remvIP4Dom(x *httpapi.Exchange) {
	p := x.Params()
	if _, err := p.Required("dom"); err != nil {
		a.fail(x, err)
		return
	}
	list, err := ipListOf(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.domOfIPs(p, list)
	if err != nil {
		a.fail(x, err)
		return
	}
	setPorts(view, list)
	by := cause(x, "remvIP4Dom")
	for _, gone := range list {
		for _, i := range at(view, gone.IP, gone.Port) {
			if err := a.unlist(x.Context(), by, view.Key, i); err != nil {
				a.fail(x, err)
				return
			}
		}
	}
	x.OK()
}

// domOfIPs returns the service that a list of instances is for.
func (a *API) domOfIPs(p *httpapi.Params, list []registry.Instance) (*registry.View, error) {
	key, err := domOf(p, "dom")
	if err != nil {
		return nil, err
	}
	view, err := a.existing(key, func(name string) error { return impossible("dom doesn't exist: %s", name) })
	if err == nil && len(list) == 0 {
		err = illegal("Empty ip list")
	}
	return view, err
}

// setPorts gives instances without a port the one of their cluster.
func setPorts(view *registry.View, list []registry.Instance) {
	for n := range list {
		if list[n].Port != 0 {
			continue
		}
		list[n].Port = defaultIPPort
		if c := view.Cluster(list[n].Cluster); c != nil && c.DefaultPort > 0 {
			list[n].Port = c.DefaultPort
		}
	}
}

// checkIPs refuses a list of which some could not be registered, so that it is
// taken whole or not at all; with updateOnly also one that holds new instances.
func checkIPs(view *registry.View, list []registry.Instance, updateOnly bool) error {
	var unknown []string
	for _, i := range list {
		if err := registry.CheckIP(i.IP); err != nil {
			return err
		}
		if view.Cluster(i.Cluster) == nil {
			if err := registry.CheckCluster(i.Cluster); err != nil {
				return err
			}
		}
		if updateOnly && len(at(view, i.IP, i.Port)) == 0 {
			unknown = append(unknown, describe(&i))
		}
	}
	if len(unknown) > 0 {
		return illegal("these IPs are not present: [%s], if you want to add them, remove updateOnly flag",
			strings.Join(unknown, ", "))
	}
	return nil
}
