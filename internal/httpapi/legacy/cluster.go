package legacy

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidwall/gjson"

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
	if c.Metadata, err = metadataOf(p, "clusterMetadata"); err != nil {
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

// clusterJSON reads a cluster in JSON.
type clusterJSON registry.Cluster

// readCluster reads a cluster, which the named parameter holds.
func readCluster(param string, v gjson.Result) (registry.Cluster, error) {
	c := clusterJSON{
		Checker:     registry.HealthCheck{Type: registry.CheckTCP},
		DefaultPort: samePort, CheckPort: defaultIPPort, UseInstancePort: true,
	}
	if !v.IsObject() || !readFields(v, c.set) {
		return registry.Cluster{}, malformed(param, "it does not describe clusters in JSON")
	}
	out := registry.Cluster(c)
	h := out.Checker
	switch h.Type { // only the fields of its type count
	case registry.CheckHTTP:
		out.Checker = registry.HealthCheck{Type: h.Type, Path: h.Path, Headers: h.Headers, ExpectedCode: cmp.Or(h.ExpectedCode, defaultCode)}
	case registry.CheckMySQL:
		out.Checker = registry.HealthCheck{Type: h.Type, User: h.User, Password: h.Password, Command: h.Command}
	case registry.CheckTCP, registry.CheckNone:
		out.Checker = registry.HealthCheck{Type: h.Type}
	default:
		return out, unsupportedCheck(string(h.Type))
	}
	return out, checkCluster(&out)
}

func (c *clusterJSON) set(name string, v gjson.Result) bool {
	switch name {
	case "name":
		return readText(v, &c.Name)
	case "healthChecker":
		return nothing(v) || v.IsObject() && readFields(v, c.setChecker)
	case "defIPPort":
		return readInt(v, &c.DefaultPort)
	case "defCkport":
		return readInt(v, &c.CheckPort)
	case "useIPPort4Check":
		return readFlag(v, &c.UseInstancePort)
	case "sitegroup":
		return readText(v, &c.SiteGroup)
	case "metadata":
		return readMetadata(v, &c.Metadata)
	default:
		return true
	}
}

func (c *clusterJSON) setChecker(name string, v gjson.Result) bool {
	h := &c.Checker
	switch name {
	case "type":
		return readText(v, (*string)(&h.Type))
	case "path":
		return readText(v, &h.Path)
	case "headers":
		return readText(v, &h.Headers)
	case "user":
		return readText(v, &h.User)
	case "pwd":
		return readText(v, &h.Password)
	case "cmd":
		return readText(v, &h.Command)
	case "expectedResponseCode":
		code := int32(h.ExpectedCode)
		ok := readInt(v, &code)
		h.ExpectedCode = int(code)
		return ok
	default:
		return true
	}
}

func unsupportedCheck(kind string) error { return illegal("unsupported health check type: %s", kind) }

// maxClusters bounds the clusters of one call.
const maxClusters = 100

// parseClusters reads the clusters of a new service. Of two with one name the
// latter counts.
func parseClusters(text string) (list []registry.Cluster, err error) {
	array := parse(text)
	if !array.IsArray() {
		return nil, malformed("clusters", "it does not describe clusters in JSON")
	}
	array.ForEach(func(_, item gjson.Result) bool {
		var c registry.Cluster
		if len(list) == maxClusters {
			err = illegal("Param 'clusters' is illegal, it has more than %d clusters.", maxClusters)
		} else if c, err = readCluster("clusters", item); err == nil {
			list = append(list, c)
		}
		return err == nil
	})
	return list, err
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
	v := parse(text)
	if !v.IsObject() {
		return registry.Cluster{}, illegal("Param 'clusterJson' is illegal, it is no JSON object of a cluster.")
	}
	return readCluster("clusterJson", v)
}
