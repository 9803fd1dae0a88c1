package legacy

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// beatBody is what a beat says of its instance.
type beatBody struct {
	ip, cluster string
	port        int32
	weight      float64 // 0 when the beat has none (recorded: api-beat-no-weight)
	metadata    string  // a JSON object, "" when there is none
}

// maxBeat bounds a beat, in bytes.
const maxBeat = 1 << 20

func parseBeat(text string) (beatBody, error) {
	b := beatBody{cluster: registry.DefaultCluster}
	if len(text) > maxBeat {
		return b, malformed("beat", "it is larger than 1 MiB")
	}
	if !readObject(text, b.set) {
		return b, malformed("beat", "it is no JSON object of a beat")
	}
	return b, nil
}

func (b *beatBody) set(name string, v gjson.Result) bool {
	switch name {
	case "ip":
		return readText(v, &b.ip)
	case "port":
		return readInt(v, &b.port)
	case "cluster":
		return readText(v, &b.cluster)
	case "weight":
		return readNumber(v, &b.weight)
	case "metadata":
		if v.IsObject() {
			b.metadata = v.Raw
		}
		return v.IsObject() || nothing(v)
	default:
		return true
	}
}

// instance is what the beat registers when its instance is not there.
func (b *beatBody) instance(app string) (registry.Instance, error) {
	i := registry.Instance{
		IP: b.ip, Port: b.port, Cluster: b.cluster, App: app, Weight: b.weight,
		Healthy: true, Enabled: true, Ephemeral: true,
	}
	var err error
	if i.Metadata, err = registry.ParseMetadata(b.metadata); err != nil {
		return i, malformed("beat", "its metadata is no JSON object of texts")
	}
	return i, nil
}

// clientBeat renews an instance, and registers one that is not there. The
// instance is the one at the address and port, in whatever cluster.
func (a *API) clientBeat(x *httpapi.Exchange) {
	p := x.Params()
	key, body, err := beatOf(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	app, err := appOf(p, "")
	if err != nil {
		a.fail(x, err)
		return
	}
	answer, err := a.take(x, key, &body, app)
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"clientBeatInterval":`...)
	b = strconv.AppendInt(b, answer.Interval.Milliseconds(), 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// beatOf reads a beat. Its service is in serviceName, or when that is blank in dom.
func beatOf(p *httpapi.Params) (key registry.ServiceKey, body beatBody, err error) {
	text, err := p.Required("beat")
	if err != nil {
		return key, body, err
	}
	if body, err = parseBeat(text); err != nil {
		return key, body, err
	}
	param := "serviceName"
	if p.Optional(param, "") == "" {
		param = "dom"
	}
	key, err = domOf(p, param)
	return key, body, err
}

// take renews the instance of a beat. The common beat is one look-up.
func (a *API) take(x *httpapi.Exchange, key registry.ServiceKey, body *beatBody, app string) (naming.BeatAnswer, error) {
	by := cause(x, "clientBeat")
	instance := registry.InstanceKey{IP: body.ip, Port: body.port, Cluster: body.cluster}
	answer, err := a.core.Beat(x.Context(), by, key, instance, nil)
	if answer.Known || err != nil {
		if answer.Unnamed {
			a.core.Introduce(key, instance, x.UserAgent())
		}
		return answer, err
	}
	view := a.core.Store().View(key)
	if !modeOf(view).beats {
		return answer, nil
	}
	if twins := at(view, instance.IP, instance.Port); len(twins) > 0 {
		return a.core.Beat(x.Context(), by, key, twins[0].Key(), nil)
	}
	return a.core.Beat(x.Context(), by, key, instance, func() (naming.Registration, error) {
		i, err := body.instance(app)
		return naming.Registration{Service: key, Instance: i, CheckService: checkName, Agent: x.UserAgent()}, err
	})
}
