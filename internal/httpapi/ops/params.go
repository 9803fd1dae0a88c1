package ops

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// service reads the service that a request names: service, which may be
// group@@service, group and namespace. Without a service its name is empty, and
// so is the group unless it was given.
func service(p *httpapi.Params) registry.ServiceKey {
	name := p.Optional("service", "")
	group := p.Optional("group", "")
	if g, n, ok := registry.ParseGrouped(name); ok {
		group, name = g, n
	}
	if group == "" && name != "" {
		group = registry.DefaultGroup
	}
	return registry.ServiceKey{
		Namespace: registry.NamespaceID(p.Optional("namespace", "")), Group: group, Name: name,
	}
}

// list reads the parts of a value with commas between.
func list(p *httpapi.Params, name string) []string {
	var parts []string
	for part := range strings.SplitSeq(p.Optional(name, ""), ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// number reads a whole number from 0 to most; absent is 0.
func number(p *httpapi.Params, name string, most int64) (int64, error) {
	text := p.Optional(name, "")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s: %q is no whole number from 0 to %d", name, text, most)
	}
	return n, nil
}

// window reads offset and limit: which page of a list is asked for.
func window(p *httpapi.Params) (offset, limit int, err error) {
	from, err := number(p, "offset", 1<<31-1)
	if err != nil {
		return 0, 0, err
	}
	n, err := number(p, "limit", maxPage)
	return int(from), int(cmp.Or(n, pageLimit)), err
}

// port reads a port; absent is 0.
func port(p *httpapi.Params) (int32, error) {
	n, err := number(p, "port", 65535)
	return int32(n), err
}

// instant reads a point in time; absent is the zero time.
func instant(p *httpapi.Params, name string, now time.Time) (time.Time, error) {
	text := p.Optional(name, "")
	if text == "" {
		return time.Time{}, nil
	}
	if age, err := time.ParseDuration(text); err == nil {
		return now.Add(-age.Abs()), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %q is no time; write 2006-01-02T15:04:05Z, milliseconds since 1970, or an age such as 15m", name, text)
	}
	return t, nil
}

// endpoint reads the address and port of a subscriber; absent is the zero value.
func endpoint(p *httpapi.Params, name string) (netip.AddrPort, error) {
	text := p.Optional(name, "")
	if text == "" {
		return netip.AddrPort{}, nil
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return addr, fmt.Errorf("%s: %q is no address with a port; write 10.0.0.7:4444 or [::1]:4444", name, text)
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}

// boolean reads true or false; absent is false.
func boolean(p *httpapi.Params, name string) (bool, error) {
	text := p.Optional(name, "false")
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s: %q is neither true nor false", name, text)
	}
	return b, nil
}
