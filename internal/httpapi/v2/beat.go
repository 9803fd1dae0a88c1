package v2

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// beat is a decoded PUT /instance/beat.
type beat struct {
	service  registry.ServiceKey
	instance registry.InstanceKey
	// full builds what a beat with a body registers; nil for a light one.
	full func() (naming.Registration, error)
}

// beatClass is what the original reads the body of a beat as.
const beatClass = "com.alibaba.nacos.naming.healthcheck.RsInfo"

func (a *API) readBeat(x *httpapi.Exchange) (beat, error) {
	f := result.NewParams(x)
	text := f.Text("beat", "")
	body, err := values.ParseBeat(text)
	if text != "" && err == nil {
		err = checkBody(&body)
	} else if text != "" {
		err = &result.DecodeError{Class: beatClass, Text: text, Cause: err}
	} else {
		err = nil
	}
	if err != nil {
		return beat{}, err
	}
	key := modern.ParseGroupedService(f)
	id := registry.InstanceKey{
		IP: f.Text("ip", ""), Cluster: f.Text("clusterName", registry.DefaultCluster),
		Port: int32(f.Int("port", result.JavaInteger, 0)),
	}
	if err := f.Err(); err != nil {
		return beat{}, err
	}
	if text == "" {
		return beat{service: key, instance: a.Core.Locate(key, id)}, nil
	}
	id.IP, id.Port = body.IP, body.Port
	if body.Cluster != "" {
		id.Cluster = body.Cluster
	}
	full := func() (naming.Registration, error) {
		r, err := body.Registration(key, id)
		r.Agent = x.UserAgent()
		return r.Modern(), err
	}
	return beat{key, a.Core.Locate(key, id), full}, nil
}

// checkBody makes the check of names in the body of a beat.
func checkBody(b *values.Beat) error {
	if err := registry.CheckClusterV2(b.Cluster); err != nil {
		return err
	}
	if err := registry.CheckIPV2(b.IP); err != nil {
		return err
	}
	return registry.CheckPortV2(strconv.Itoa(int(b.Port)))
}
