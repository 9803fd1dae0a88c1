package v1

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Groups returns the manners of the paths of this generation: those of /v1/ns,
// and those of all other paths.
func (a *API) Groups() []httpapi.Group {
	return []httpapi.Group{
		{
			Prefix: "/v1/ns", Strict: true, Gate: a.gate,
			NoRoute: httpapi.NoSuchAPI, WrongMethod: httpapi.NoSuchAPI,
		},
		{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported},
	}
}

// gate keeps requests out that an operator has switched off: URLs that begin with
// a prefix of the switch limitedUrlMap, and all that the server status that is
// forced by overriddenServerStatus does not allow. It reports whether it has
// answered. A request that is let through costs no allocation.
func (a *API) gate(x *httpapi.Exchange) bool {
	switches := a.core.Store().Switches()
	if len(switches.LimitedURLMap) > 0 {
		if status, limited := limit(x, switches.LimitedURLMap); limited {
			x.Empty(status)
			return true
		}
	}
	status := switches.Status()
	if status == registry.StatusUp || allowed(x, status) {
		return false
	}
	// Without a type, as recorded: switch-status-readonly.
	x.Answer(503, "", []byte("server is "+status+"now, please try again later!"))
	return true
}

// limit returns the status with which a limited URL is answered. Of several
// prefixes the longest counts. The call that sets switches is never limited:
// nobody could undo that.
func limit(x *httpapi.Exchange, limited map[string]int) (status int, found bool) {
	if isSetSwitch(x) {
		return 0, false
	}
	longest := -1
	for prefix, code := range limited {
		if len(prefix) > longest && beginsWith(x, prefix) {
			longest, status = len(prefix), code
		}
	}
	return status, longest >= 0
}

// beginsWith reports whether path?query of the request begins with prefix. A
// request at the root is also the one below the context path.
func beginsWith(x *httpapi.Exchange, prefix string) bool {
	const root = "/v1/"
	if i := strings.Index(prefix, root); i > 0 && strings.HasPrefix(x.Path(), root) {
		prefix = prefix[i:]
	}
	rest, ok := strings.CutPrefix(prefix, x.Path())
	if !ok {
		return strings.HasPrefix(x.Path(), prefix)
	}
	if rest == "" {
		return true
	}
	query, ok := strings.CutPrefix(rest, "?")
	return ok && x.Query() != "" && strings.HasPrefix(x.Query(), query)
}

func isSetSwitch(x *httpapi.Exchange) bool {
	return x.Method() == "PUT" && x.Route().Resource == resourceSwitches
}

// allowed reports whether a status other than UP lets a request through: writes
// when it is WRITE_ONLY, GET when it is READ_ONLY, and those of other servers
// always.
func allowed(x *httpapi.Exchange, status string) bool {
	switch {
	case x.Agent().Kind == httpapi.ServerAgent:
		return true
	case status == registry.StatusWriteOnly:
		return x.Method() != "GET"
	case status == registry.StatusReadOnly:
		return x.Method() == "GET"
	default:
		return false
	}
}
