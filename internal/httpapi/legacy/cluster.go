package legacy

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// newCluster decodes the cluster that regDom and addCluster4Dom describe by
// parameters. required are those that the call wants for the kind of its probe.
func newCluster(p *httpapi.Params, required ...string) (registry.Cluster, error) {
	c := *registry.NewCluster(p.Optional("clusterName", registry.DefaultCluster))
	c.UseInstancePort = p.BoolStrict("ipPort4Check", true)
	c.SiteGroup = p.Optional("siteGroup", "")
	c.CheckPort = int32(intOf(p, "defCkport", defaultIPPort))
	c.DefaultPort = int32(intOf(p, "defIPPort", samePort))
	var err error
	if c.Metadata, err = metadataOf("clusterMetadata", []byte(p.Optional("clusterMetadata", ""))); err != nil {
		return c, err
	}
	kind := registry.CheckType(p.Optional("cktype", string(registry.CheckTCP)))
	if c.Checker, err = checkerOf(p, kind, required); err != nil {
		return c, err
	}
	return c, checkCluster(&c)
}

// intOf returns a number. As in 0.9 text that is none counts as 0.
func intOf(p *httpapi.Params, name string, def int) int {
	if p.Optional(name, "") == "" {
		return def
	}
	return p.IntOrZero(name)
}

// samePort as the port of instances that are given without one means the port that
// is probed.
const samePort = -1

// checkCluster refuses a cluster that the core would refuse, and resolves
// samePort.
func checkCluster(c *registry.Cluster) error {
	if err := registry.CheckCluster(c.Name); err != nil {
		return err
	}
	if c.CheckPort < 1 || c.CheckPort > math.MaxUint16 {
		return illegal("Param 'defCkport' is illegal, it must be within 1 and 65535.")
	}
	if c.DefaultPort == samePort {
		c.DefaultPort = c.CheckPort
	}
	if c.DefaultPort < 0 || c.DefaultPort > math.MaxUint16 {
		return illegal("Param 'defIPPort' is illegal, it must be within 0 and 65535.")
	}
	if len(c.SiteGroup) > maxSiteGroup {
		return illegal("Param 'siteGroup' is illegal, it has %d bytes and may have %d.", len(c.SiteGroup), maxSiteGroup)
	}
	return registry.CheckProbe(c)
}

// maxSiteGroup bounds the name of a group of sites, in bytes.
const maxSiteGroup = 256

// defaultCode is the status that an HTTP probe expects when nobody says.
const defaultCode = 200

// checkerOf decodes a probe. As in 0.9 a kind that is none of its own is TCP.
func checkerOf(p *httpapi.Params, kind registry.CheckType, required []string) (registry.HealthCheck, error) {
	c := registry.HealthCheck{Type: kind}
	var err error
	text := func(name string) string {
		if !slices.Contains(required, name) {
			return p.Optional(name, "")
		}
		value, fault := p.Required(name)
		if err == nil {
			err = fault
		}
		return value
	}
	switch kind {
	case registry.CheckHTTP:
		c.Path, c.Headers = text("path"), text("headers")
		if err == nil {
			c.ExpectedCode, err = p.Int("expectedResponseCode", defaultCode)
		}
	case registry.CheckMySQL:
		c.Command, c.Password, c.User = text("cmd"), text("pwd"), text("user")
	case registry.CheckTCP, registry.CheckNone:
	default:
		c.Type = registry.CheckTCP
	}
	return c, err
}

// clusterJSON is a cluster in JSON.
type clusterJSON struct {
	Name        looseText       `json:"name"`
	Checker     checkerJSON     `json:"healthChecker"`
	DefaultPort looseInt        `json:"defIPPort"`
	CheckPort   looseInt        `json:"defCkport"`
	UsePort     looseFlag       `json:"useIPPort4Check"`
	SiteGroup   looseText       `json:"sitegroup"`
	Metadata    json.RawMessage `json:"metadata"`
}

type checkerJSON struct {
	Type     looseText `json:"type"`
	Path     looseText `json:"path"`
	Headers  looseText `json:"headers"`
	Code     looseInt  `json:"expectedResponseCode"`
	User     looseText `json:"user"`
	Password looseText `json:"pwd"`
	Command  looseText `json:"cmd"`
}

// UnmarshalJSON implements [json.Unmarshaler] with the defaults of 0.9.
func (c *clusterJSON) UnmarshalJSON(data []byte) error {
	type plain clusterJSON // without this method
	p := plain{
		Checker:     checkerJSON{Type: looseText(registry.CheckTCP)},
		DefaultPort: samePort, CheckPort: defaultIPPort, UsePort: true,
	}
	err := json.Unmarshal(data, &p)
	*c = clusterJSON(p)
	return err
}

// cluster returns the cluster that came in the named parameter.
func (c *clusterJSON) cluster(param string) (registry.Cluster, error) {
	out := registry.Cluster{
		Name: string(c.Name), CheckPort: int32(c.CheckPort), DefaultPort: int32(c.DefaultPort),
		UseInstancePort: bool(c.UsePort), SiteGroup: string(c.SiteGroup),
	}
	var err error
	if out.Metadata, err = metadataOf(param, c.Metadata); err != nil {
		return out, err
	}
	h := c.Checker
	switch kind := registry.CheckType(h.Type); kind {
	case registry.CheckHTTP:
		out.Checker = registry.HealthCheck{Path: string(h.Path), Headers: string(h.Headers), ExpectedCode: int(h.Code)}
		if h.Code == 0 {
			out.Checker.ExpectedCode = defaultCode
		}
		out.Checker.Type = kind
	case registry.CheckMySQL:
		out.Checker = registry.HealthCheck{Type: kind, User: string(h.User), Password: string(h.Password), Command: string(h.Command)}
	case registry.CheckTCP, registry.CheckNone:
		out.Checker.Type = kind
	default:
		return out, unsupportedCheck(string(kind))
	}
	return out, checkCluster(&out)
}

func unsupportedCheck(kind string) error { return illegal("unsupported health check type: %s", kind) }

// maxClusters bounds the clusters of one call.
const maxClusters = 100

// parseClusters reads the clusters of a new service. Of two with one name the
// latter counts.
func parseClusters(text string) ([]registry.Cluster, error) {
	var items []clusterJSON
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		return nil, malformed("clusters", "it is no JSON array of clusters")
	}
	if len(items) > maxClusters {
		return nil, illegal("Param 'clusters' is illegal, it has %d clusters and may have %d.", len(items), maxClusters)
	}
	list := make([]registry.Cluster, 0, len(items))
	for n := range items {
		c, err := items[n].cluster("clusters")
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// addCluster4Dom sets the settings of a cluster, which is made when it is not
// there.
func (a *API) addCluster4Dom(x *httpapi.Exchange) {
	p := x.Params()
	key, err := domOf(p, "serviceName")
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key, func(name string) error { return illegal("dom not found: %s", name) })
	if err != nil {
		a.fail(x, err)
		return
	}
	cluster, err := addedCluster(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	if modeOf(view) == unwatched {
		unwatch(&cluster)
	}
	set := func(c *registry.Cluster) { *c = cluster }
	if err := a.core.SetCluster(x.Context(), cause(x, "addCluster4Dom"), key, cluster.Name, set); err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// addedCluster reads a cluster from JSON or from parameters. Unlike 0.9, which
// then resets the default cluster, it refuses JSON that cannot be read.
func addedCluster(p *httpapi.Params) (registry.Cluster, error) {
	text := p.Optional("clusterJson", "")
	if text == "" {
		return newCluster(p, "cmd", "pwd", "user")
	}
	var item *clusterJSON
	if err := json.Unmarshal([]byte(text), &item); err != nil || item == nil {
		return registry.Cluster{}, illegal("Param 'clusterJson' is illegal, it is no JSON object of a cluster.")
	}
	return item.cluster("clusterJson")
}
