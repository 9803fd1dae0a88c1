package legacy

import (
	"context"
	"math"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// domSettings are what regDom gives a new service.
type domSettings struct {
	info     registry.ServiceInfo
	clusters []registry.Cluster
}

// declaresDom reports whether a call carries settings of a service, beside those
// of its instance.
func declaresDom(p *httpapi.Params) bool {
	for _, name := range []string{
		"owners", "token", "protectThreshold", "serviceMetadata", "enableHealthCheck", "enableClientBeat",
		"serviceEnabled", "resetWeight", "isUseSpecifiedURL", "clusters", "cktype", "ipPort4Check",
		"defIPPort", "defCkport", "clusterMetadata",
	} {
		if p.Optional(name, "") != "" {
			return true
		}
	}
	return false
}

// regDom makes a service, which then stays when it is empty.
func (a *API) regDom(x *httpapi.Exchange) {
	p := x.Params()
	key, err := domOf(p, "serviceName")
	if err == nil && a.core.Store().View(key) != nil {
		err = alreadyThere(key)
	}
	if err == nil {
		err = a.createDom(x.Context(), cause(x, "regDom"), key, p)
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

func alreadyThere(key registry.ServiceKey) error {
	return illegal("specified dom already exists, dom : %s", shown(key))
}

// createDom makes a service as the parameters say. Nothing is made when one of
// them is refused.
func (a *API) createDom(ctx context.Context, by registry.Cause, key registry.ServiceKey, p *httpapi.Params) error {
	if err := checkName(key); err != nil {
		return err
	}
	s, err := domSettingsOf(p)
	if err != nil {
		return err
	}
	err = a.core.CreateService(ctx, by, key, s.info, checkName)
	if isRefusal(err, registry.ServiceExists) {
		return alreadyThere(key)
	}
	if err != nil {
		return err
	}
	for _, cluster := range s.clusters {
		set := func(c *registry.Cluster) { *c = cluster }
		if err := a.core.SetCluster(ctx, by, key, cluster.Name, set); err != nil {
			return err
		}
	}
	return nil
}

// domSettingsOf decodes the settings of a new service.
func domSettingsOf(p *httpapi.Params) (s domSettings, err error) {
	threshold, _ := httpapi.ParseJavaDouble(p.Optional("protectThreshold", "")) // text that is no number is 0
	if s.info.ProtectThreshold, err = finite(threshold); err != nil {
		return s, err
	}
	s.info.Disabled = !p.BoolStrict("serviceEnabled", true)
	legacy := registry.LegacyInfo{
		Owners: ownersOf(p), Token: p.Optional("token", ""),
		EnableHealthCheck: p.BoolStrict("enableHealthCheck", false),
		DisableClientBeat: !p.BoolStrict("enableClientBeat", true),
		ResetWeight:       p.BoolStrict("resetWeight", false),
		UseSpecifiedURL:   p.BoolStrict("isUseSpecifiedURL", false),
	}
	if err := setLegacy(&s.info, legacy); err != nil {
		return s, err
	}
	if s.info.Metadata, err = metadataOf(p, "serviceMetadata"); err != nil {
		return s, err
	}
	if p.Optional("envAndSites", "") != "" && p.Optional("disabledSites", "") != "" {
		return s, illegal("envAndSite and disabledSites are not allowed both not empty.")
	}
	if s.clusters, err = newClusters(p); err != nil {
		return s, err
	}
	if legacy.DisableClientBeat && !legacy.EnableHealthCheck {
		for n := range s.clusters {
			unwatch(&s.clusters[n])
		}
	}
	return s, nil
}

// newClusters decodes the clusters of a new service: a JSON array of them, or one
// in parameters.
func newClusters(p *httpapi.Params) ([]registry.Cluster, error) {
	if text := p.Optional("clusters", ""); text != "" {
		return parseClusters(text)
	}
	c, err := newCluster(p)
	return []registry.Cluster{c}, err
}

// finite refuses a threshold that no JSON could show. 0.9 has no range.
func finite(threshold float64) (float32, error) {
	if math.IsNaN(threshold) || math.Abs(threshold) > math.MaxFloat32 {
		return 0, illegal("Param 'protectThreshold' is illegal, it must be a number.")
	}
	return float32(threshold), nil
}

// ownersOf returns the owners of a service, nil when the call names none.
func ownersOf(p *httpapi.Params) []string {
	text := strings.TrimRight(p.Optional("owners", ""), ",")
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// The longest texts that this API keeps with a service, in bytes.
const (
	maxOwners = 4096
	maxToken  = 512
)

// setLegacy keeps with a service what only this API knows of it.
func setLegacy(info *registry.ServiceInfo, legacy registry.LegacyInfo) error {
	if n := len(strings.Join(legacy.Owners, ",")); n > maxOwners {
		return illegal("Param 'owners' is illegal, it has %d bytes and may have %d.", n, maxOwners)
	}
	if n := len(legacy.Token); n > maxToken {
		return illegal("Param 'token' is illegal, it has %d bytes and may have %d.", n, maxToken)
	}
	info.Legacy = &legacy
	return nil
}

// remvDom removes a service with all that is in it.
func (a *API) remvDom(x *httpapi.Exchange) {
	key, err := domOf(x.Params(), "dom")
	if err != nil {
		a.fail(x, err)
		return
	}
	err = a.core.DeleteService(x.Context(), cause(x, "remvDom"), key, false)
	if isRefusal(err, registry.ServiceNotFound) {
		err = impossible("specified domain doesn't exists.")
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}
