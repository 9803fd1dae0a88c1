package legacy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// refusal is an error in the shape that 0.9 gives it.
type refusal struct {
	status int
	// typed: the answer has the type of JSON and a line feed behind the text, as 0.9
	// answers whatever it raises as an illegal argument.
	typed bool
	text  string
}

func (r *refusal) Error() string { return r.text }

// illegal refuses an argument.
func illegal(format string, args ...any) error {
	return &refusal{400, true, fmt.Sprintf(format, args...)}
}

// missing refuses a name that is not there.
func missing(format string, args ...any) error {
	return &refusal{404, false, fmt.Sprintf(format, args...)}
}

// impossible refuses what 0.9 raises as an illegal state, or cannot read. There
// the text begins with the name of a Java class, which is left out here.
func impossible(format string, args ...any) error {
	return &refusal{500, false, fmt.Sprintf(format, args...)}
}

// malformed refuses a JSON parameter that cannot be read.
func malformed(param, reason string) error {
	return impossible("Param '%s' is illegal, %s.", param, reason)
}

// fail answers err in the form of 0.9. What is no refusal is logged, and its text
// stays here.
func (a *API) fail(x *httpapi.Exchange, err error) {
	r := refusalOf(err)
	if r == nil {
		a.log.Error("request failed", "method", x.Method(), "path", x.Path(), "err", err)
		r = &refusal{status: 500, text: "internal error, see the server's log"}
	}
	text := httpapi.ErrorText(r.text)
	if r.typed {
		x.Answer(r.status, "application/json", []byte(text+"\n"))
		return
	}
	x.Text(r.status, text)
}

// refusalOf returns the refusal that err is, nil when it is none.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if fault, ok := errors.AsType[*httpapi.ParamError](err); ok {
		return &refusal{400, true, fault.Error()}
	}
	refused, ok := errors.AsType[*registry.Error](err)
	if !ok {
		return nil
	}
	switch refused.Code {
	case registry.InvalidMetadata: // 0.9: its own exception class with the code 400
		return &refusal{400, false, refused.Msg}
	case registry.ServiceDisabled:
		return &refusal{500, false, "domain is disabled now."}
	case registry.RegistrationDisabled:
		return &refusal{500, false, "Adding IP for dom is forbidden now."}
	case registry.MalformedSwitch: // only a batch can be
		return &refusal{500, false, "Param 'json' is illegal, it has a switch with a value of the wrong type."}
	case registry.ServiceNotFound:
		return &refusal{404, false, "dom not found: " + plain(refused.Value)}
	default:
		return &refusal{400, true, refused.Msg}
	}
}

// plain returns a grouped name as this API shows it.
func plain(grouped string) string {
	return strings.TrimPrefix(grouped, registry.DefaultGroup+registry.GroupSeparator)
}

// isRefusal reports whether err is the core's refusal with that code.
func isRefusal(err error, code registry.Code) bool {
	refused, ok := errors.AsType[*registry.Error](err)
	return ok && refused.Code == code
}
