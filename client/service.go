package rollcall

import (
	"strings"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// What an empty field of a [Service] or an [Instance] stands for, unless the
// client was made with other defaults.
const (
	DefaultNamespace = "public"
	DefaultGroup     = "DEFAULT_GROUP"
	DefaultCluster   = "DEFAULT"
)

// Service names a service. An empty Namespace or Group stands for the default of
// the client; Name is required.
type Service struct {
	Namespace string // the ID of a namespace, not its display name
	Group     string
	Name      string
}

// String returns namespace/group/name, without what is empty.
func (s Service) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{s.Namespace, s.Group, s.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

func (s Service) wire() wire.Service { return wire.Service(s) }

// maxName bounds each part of the name of a service, in bytes. The original's
// limit is 512 for the whole.
const maxName = 512

func (s Service) check() error {
	switch {
	case s.Name == "":
		return invalid("the name of a service is empty")
	case strings.Contains(s.Name, "@@"), strings.Contains(s.Group, "@@"):
		return invalid("%q: @@ parts group and name on the wire and can be in neither", s.String())
	case len(s.Name) > maxName, len(s.Group) > maxName, len(s.Namespace) > maxName:
		return invalid("the name of a service is longer than %d bytes", maxName)
	case strings.ContainsAny(s.Namespace+s.Group+s.Name, "\x00\r\n"):
		return invalid("%q has control characters", s.String())
	}
	return nil
}
