package values

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Beat is what a full beat says of its instance. Its strings are memory of
// the request, and so is metadata, which is read only when the instance must be
// registered.
type Beat struct {
	IP, Cluster string
	Port        int32
	Weight      float64
	Ephemeral   bool
	Metadata    string // a JSON object, "" when there is none
}

// illegalBeat refuses a body. field is "" when the fault is in the whole.
func illegalBeat(field, reason string) error {
	if field != "" {
		reason = "its field '" + field + "' " + reason
	}
	return registry.Refuse(registry.InvalidArgument, "beat", field, "Param 'beat' is illegal, %s.", reason)
}

// maxBeat bounds the body of a beat. Metadata is bounded again when it is stored.
const maxBeat = 1 << 20 // bytes

// ParseBeat reads a body with the tolerance of 1.4.8: unknown fields are left
// out, numbers may be strings and texts numbers, the last of equal fields counts.
// A missing weight is 1, not 0, which would make clients avoid the instance.
func ParseBeat(text string) (Beat, error) {
	body := Beat{Weight: 1, Ephemeral: true}
	if len(text) > maxBeat {
		return body, illegalBeat("", "it is larger than 1 MiB")
	}
	if !validJSON(text) {
		return body, illegalBeat("", "it is not JSON")
	}
	object := gjson.Parse(text)
	if !object.IsObject() {
		return body, illegalBeat("", "it is not a JSON object")
	}
	var err error
	object.ForEach(func(name, value gjson.Result) bool {
		if !body.set(name.Str, value) {
			err = illegalBeat(name.Str, "has a value of the wrong type")
		}
		return err == nil
	})
	return body, err
}

// set takes one field and reports whether its value can be one of that field.
func (b *Beat) set(name string, value gjson.Result) (ok bool) {
	switch name {
	case "ip":
		b.IP, ok = textOf(value)
	case "cluster":
		b.Cluster, ok = textOf(value)
		b.Cluster = strings.TrimSpace(b.Cluster)
	case "port":
		b.Port, ok = portOf(value)
	case "weight":
		b.Weight, ok = weightOf(value)
	case "ephemeral":
		b.Ephemeral, ok = flagOf(value)
	case "metadata":
		b.Metadata, ok = objectOf(value)
	default:
		ok = true
	}
	return ok
}

// Registration is what the body registers when its instance is not there.
func (b *Beat) Registration(key registry.ServiceKey, instance registry.InstanceKey) (naming.Registration, error) {
	metadata, err := registry.ParseMetadata(b.Metadata)
	if err != nil {
		return naming.Registration{}, err
	}
	return naming.Registration{Service: key, Instance: registry.Instance{
		IP: instance.IP, Port: instance.Port, Cluster: instance.Cluster,
		Weight: b.Weight, Metadata: metadata,
		Healthy: true, Enabled: true, Ephemeral: b.Ephemeral,
	}}, nil
}
