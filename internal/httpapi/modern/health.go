package modern

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// SetHealth sets the health of a persistent instance by hand.
func (a *API) SetHealth(x *httpapi.Exchange) {
	f := result.NewForm(x, "updateHealthForm")
	healthy := f.NeedBool("healthy")
	key := ParseService(f)
	instance := registry.InstanceKey{
		IP: f.Need("ip"), Port: int32(f.NeedInt("port")), Cluster: f.Text("clusterName", registry.DefaultCluster),
	}
	err := f.Err()
	if err == nil {
		err = a.Core.SetPersistentHealth(x.Context(), a.Cause(x, "set health"), key, instance, healthy)
	}
	a.Done(x, err)
}

// Live answers that the process serves.
func (a *API) Live(x *httpapi.Exchange) { a.Done(x, nil) }

// ReadyWith returns a handler that answers whether the server may be sent traffic.
// status is that of the answer when it may not.
func (a *API) ReadyWith(status int) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		if err := a.Ready(); err != nil {
			a.FailText(x, status, err.Error())
			return
		}
		a.Done(x, nil)
	}
}
