package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The codes in the answer to a beat. Source: Nacos NamingResponseCode.
const (
	beatTaken        = "10200"
	resourceNotFound = "20404"
)

// beat answers PUT /instance/beat. A beat with a body, which the parameter beat
// holds as JSON, registers an instance that is not there; one without, a light
// beat, is told that it is not.
func (a *API) beat(x *httpapi.Exchange) {
	p := x.Params()
	var body values.Beat
	text := p.Optional("beat", "")
	light := text == "" || text == "null" // recorded for 1.4.8: JSON null is no body
	if !light {
		var err error
		if body, err = values.ParseBeat(text); err != nil {
			a.failAs(x, registry.InvalidArgument, 500, err) // recorded: beat-bad-types
			return
		}
	}
	key, instance, err := beatTarget(p, &body, light)
	if err != nil {
		a.fail(x, err)
		return
	}
	var full func() (naming.Registration, error)
	if !light {
		full = func() (naming.Registration, error) {
			r, err := body.Registration(key, instance)
			r.Agent = x.UserAgent()
			return r, err
		}
	}
	answer, err := a.core.Beat(x.Context(), cause(x, "beat"), key, instance, full)
	if err != nil {
		a.fail(x, err)
		return
	}
	if answer.Unnamed {
		a.core.Introduce(key, instance, x.UserAgent())
	}
	x.Scratch = appendBeatAnswer(x.Scratch[:0], answer)
	x.JSON(200, x.Scratch)
}

// beatTarget returns whom a beat is for. The service is that of the parameters,
// whatever the body says; the address is that of the body, when there is one.
func beatTarget(p *httpapi.Params, body *values.Beat, light bool) (registry.ServiceKey, registry.InstanceKey, error) {
	port, err := p.Int("port", 0)
	if err != nil {
		return registry.ServiceKey{}, registry.InstanceKey{}, err
	}
	instance := registry.InstanceKey{
		IP: p.Optional("ip", ""), Port: int32(port),
		Cluster: p.Optional("clusterName", registry.DefaultCluster),
	}
	if !light {
		instance.IP, instance.Port = body.IP, body.Port
		if body.Cluster != "" {
			instance.Cluster = body.Cluster
		}
	}
	key, err := serviceKey(p)
	return key, instance, err
}

func appendBeatAnswer(b []byte, answer naming.BeatAnswer) []byte {
	b = append(b, `{"clientBeatInterval":`...)
	b = strconv.AppendInt(b, answer.Interval.Milliseconds(), 10)
	b = append(b, `,"code":`...)
	if !answer.Known {
		return append(b, resourceNotFound+"}"...)
	}
	b = append(b, beatTaken+`,"lightBeatEnabled":`...)
	b = strconv.AppendBool(b, answer.Light)
	return append(b, '}')
}
