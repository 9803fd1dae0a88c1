package v1

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// beatBody is what a full beat says of its instance. Its strings are memory of
// the request, and so is metadata, which is read only when the instance must be
// registered.
type beatBody struct {
	ip, cluster string
	port        int32
	weight      float64
	ephemeral   bool
	metadata    string // a JSON object, "" when there is none
}

// illegalBeat refuses a body. field is "" when the fault is in the whole.
func illegalBeat(field, reason string) error {
	if field != "" {
		reason = "its field '" + field + "' " + reason
	}
	return registry.Refuse(registry.InvalidArgument, "beat", field, "Param 'beat' is illegal, %s.", reason)
}

// The bounds of a beat's body. Metadata is bounded again when it is stored.
const (
	maxBeat = 1 << 20 // bytes
	// maxBrackets is the number of brackets from which on the slower check is
	// used, whose memory does not grow with the depth of the JSON.
	maxBrackets = 1 << 10
)

// parseBeat reads a body with the tolerance of 1.4.8: unknown fields are left
// out, numbers may be strings and texts numbers, the last of equal fields counts.
// A missing weight is 1, not 0, which would make clients avoid the instance.
func parseBeat(text string) (beatBody, error) {
	body := beatBody{weight: 1, ephemeral: true}
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

func validJSON(text string) bool {
	if strings.Count(text, "{")+strings.Count(text, "[") > maxBrackets {
		return json.Valid([]byte(text))
	}
	return gjson.Valid(text)
}

// set takes one field and reports whether its value can be one of that field.
func (b *beatBody) set(name string, value gjson.Result) (ok bool) {
	switch name {
	case "ip":
		b.ip, ok = textOf(value)
	case "cluster":
		b.cluster, ok = textOf(value)
		b.cluster = strings.TrimSpace(b.cluster)
	case "port":
		b.port, ok = portOf(value)
	case "weight":
		b.weight, ok = weightOf(value)
	case "ephemeral":
		b.ephemeral, ok = flagOf(value)
	case "metadata":
		b.metadata, ok = objectOf(value)
	default:
		ok = true
	}
	return ok
}

func textOf(v gjson.Result) (string, bool) {
	if v.Type == gjson.JSON {
		return "", false
	}
	return v.String(), true // null is ""
}

// portOf takes numbers, which lose their fraction, and numbers as text.
func portOf(v gjson.Result) (int32, bool) {
	switch v.Type {
	case gjson.Null:
		return 0, true
	case gjson.Number:
		n := math.Trunc(v.Num)
		return int32(n), n >= math.MinInt32 && n <= math.MaxInt32
	case gjson.String:
		text := strings.TrimSpace(v.Str)
		if text == "" {
			return 0, true
		}
		n, err := strconv.ParseInt(text, 10, 32)
		return int32(n), err == nil
	default:
		return 0, false
	}
}

// weightOf takes numbers, also as text, but no NaN and no infinity.
func weightOf(v gjson.Result) (float64, bool) {
	w, ok := v.Num, true
	switch v.Type {
	case gjson.Null:
		return 1, true
	case gjson.Number:
	case gjson.String:
		if strings.TrimSpace(v.Str) == "" {
			return 1, true
		}
		w, ok = httpapi.ParseJavaDouble(v.Str)
	default:
		return 0, false
	}
	return w, ok && !math.IsNaN(w) && !math.IsInf(w, 0)
}

func flagOf(v gjson.Result) (flag, ok bool) {
	switch v.Type {
	case gjson.Null:
		return true, true
	case gjson.True, gjson.False:
		return v.Type == gjson.True, true
	case gjson.Number:
		return v.Num != 0, true
	case gjson.String:
		text := strings.TrimSpace(v.Str)
		return strings.EqualFold(text, "true"), strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	default:
		return false, false
	}
}

func objectOf(v gjson.Result) (string, bool) {
	if v.Type == gjson.Null {
		return "", true
	}
	return v.Raw, v.IsObject()
}

// registration is what the body registers when its instance is not there.
func (b *beatBody) registration(key registry.ServiceKey, instance registry.InstanceKey) (naming.Registration, error) {
	metadata, err := registry.ParseMetadata(b.metadata)
	if err != nil {
		return naming.Registration{}, err
	}
	return naming.Registration{Service: key, Instance: registry.Instance{
		IP: instance.IP, Port: instance.Port, Cluster: instance.Cluster,
		Weight: b.weight, Metadata: metadata,
		Healthy: true, Enabled: true, Ephemeral: b.ephemeral,
	}}, nil
}
