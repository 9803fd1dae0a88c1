package rollcallgrpc

import (
	"fmt"
	"net/url"
	"strings"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// Scheme begins the targets.
const Scheme = "rollcall"

// Target returns the target of a service.
func Target(s rollcall.Service) string {
	path := url.PathEscape(s.Name)
	if s.Group != "" {
		path = url.PathEscape(s.Group) + "/" + path
	}
	return Scheme + "://" + url.PathEscape(s.Namespace) + "/" + path
}

// parse reads a target.
func parse(u *url.URL) (s rollcall.Service, filters []rollcall.FilterOption, err error) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.Opaque != "" || len(parts) > 2 || parts[len(parts)-1] == "" {
		return s, nil, fmt.Errorf("%q is no target; write %s://namespace/group/service or %s:///service", u, Scheme, Scheme)
	}
	for i, part := range parts {
		if parts[i], err = url.PathUnescape(part); err != nil {
			return s, nil, fmt.Errorf("target %q: %w", u, err)
		}
	}
	s = rollcall.Service{Namespace: u.Host, Name: parts[len(parts)-1]}
	if len(parts) == 2 {
		s.Group = parts[0]
	}
	for key, values := range u.Query() {
		if key != "cluster" {
			return s, nil, fmt.Errorf("target %q: there is no parameter %s, only cluster", u, key)
		}
		for _, value := range values {
			filters = append(filters, rollcall.WithClusters(strings.Split(value, ",")...))
		}
	}
	return s, filters, nil
}
