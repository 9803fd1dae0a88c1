package legacy

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// domUpdate is a decoded updateDom.
type domUpdate struct {
	info registry.ServiceInfo // all of it
	mode mode
	// cluster is named by the call; change is nil when it leaves its settings.
	cluster string
	change  func(*registry.Cluster)
}

// updateDom changes the settings of a service that the call names; others stay. A
// call that does not say otherwise enables the service.
func (a *API) updateDom(x *httpapi.Exchange) {
	p := x.Params()
	key, err := domOf(p, "dom")
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key, func(string) error { return impossible("dom not found") })
	if err != nil {
		a.fail(x, err)
		return
	}
	u, err := domUpdateOf(p, view)
	if err == nil {
		err = a.apply(x.Context(), cause(x, "updateDom"), view, &u)
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// apply makes an update. The settings come first: who registers from then on does
// so in the new mode.
func (a *API) apply(ctx context.Context, by registry.Cause, view *registry.View, u *domUpdate) error {
	set := func(info *registry.ServiceInfo) { *info = u.info }
	if err := a.core.UpdateService(ctx, by, view.Key, set); err != nil {
		return err
	}
	if u.change != nil {
		if err := a.core.SetCluster(ctx, by, view.Key, u.cluster, u.change); err != nil {
			return err
		}
	}
	return a.enter(ctx, by, view, u.mode)
}

// domUpdateOf decodes an update of the service in view.
func domUpdateOf(p *httpapi.Params, view *registry.View) (u domUpdate, err error) {
	u.info = *view.Info
	if p.Optional("protectThreshold", "") != "" {
		threshold, err := p.Float("protectThreshold", 0)
		if err != nil {
			return u, err
		}
		if u.info.ProtectThreshold, err = finite(threshold); err != nil {
			return u, err
		}
	}
	u.info.Disabled = !p.BoolStrict("serviceEnabled", true)
	legacy := legacyOf(view.Info)
	if owners := ownersOf(p); owners != nil {
		legacy.Owners = owners
	}
	legacy.Token = p.Optional("newToken", legacy.Token)
	legacy.DisableClientBeat = !p.BoolStrict("enableClientBeat", !legacy.DisableClientBeat)
	legacy.EnableHealthCheck = p.BoolStrict("enableHealthCheck", legacy.EnableHealthCheck)
	legacy.ResetWeight = p.BoolStrict("resetWeight", legacy.ResetWeight)
	legacy.UseSpecifiedURL = p.BoolStrict("useSpecifiedURL", legacy.UseSpecifiedURL)
	if err := setLegacy(&u.info, legacy); err != nil {
		return u, err
	}
	u.mode = mode{beats: !legacy.DisableClientBeat, probes: legacy.EnableHealthCheck}
	return u, u.readCluster(p, view)
}

// readCluster decodes what an update says of one cluster.
func (u *domUpdate) readCluster(p *httpapi.Params, view *registry.View) error {
	u.cluster = p.Optional("cluster", registry.DefaultCluster)
	touched := false
	for _, name := range []string{"sitegroup", "cktype", "defIPPort", "ipPort4Check", "defCkPort"} {
		touched = touched || p.Optional(name, "") != ""
	}
	if !touched {
		return nil
	}
	have := view.Cluster(u.cluster)
	if have == nil {
		return impossible("cluster not found")
	}
	next := *have
	next.SiteGroup = p.Optional("sitegroup", next.SiteGroup)
	next.UseInstancePort = p.BoolStrict("ipPort4Check", next.UseInstancePort)
	ports := []struct {
		param string
		port  *int32
	}{{"defIPPort", &next.DefaultPort}, {"defCkPort", &next.CheckPort}}
	for _, f := range ports {
		n, err := p.Int(f.param, int(*f.port))
		if err != nil {
			return err
		}
		*f.port = int32(n)
	}
	if err := readChecker(p, &next); err != nil {
		return err
	}
	if u.mode == unwatched {
		unwatch(&next)
	}
	u.change = func(c *registry.Cluster) { *c = next }
	return checkCluster(&next)
}

// readChecker decodes the probe of an update, when it has one.
func readChecker(p *httpapi.Params, c *registry.Cluster) error {
	kind := registry.CheckType(p.Optional("cktype", ""))
	switch kind {
	case "":
		return nil
	case registry.CheckHTTP, registry.CheckTCP, registry.CheckMySQL, registry.CheckNone:
	default:
		return unsupportedCheck(string(kind))
	}
	var err error
	c.Checker, err = checkerOf(p, kind, []string{"path", "cmd", "pwd", "user"})
	return err
}
