package rollcall

import (
	"errors"
	"fmt"
	"strconv"
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

// check returns all that is wrong with the name of a service.
func (s Service) check() error {
	var empty error
	if s.Name == "" {
		empty = invalid("Service.Name is empty")
	}
	return errors.Join(empty, checkNames("Service", s.Namespace, s.Group, s.Name))
}

// checkNames checks the fields of a type that names services; they may be empty.
func checkNames(of, namespace, group, name string) error {
	var faults []error
	for _, part := range []struct{ field, name string }{{"Namespace", namespace}, {"Group", group}, {"Name", name}} {
		if err := checkName(part.name); err != nil {
			faults = append(faults, invalid("%s.%s %s: %v", of, part.field, shortened(part.name), err))
		}
	}
	return errors.Join(faults...)
}

var (
	errSeparator = errors.New("@@ parts group and name on the wire and can be in neither")
	errLongName  = fmt.Errorf("it is longer than %d bytes", maxName)
	errControl   = errors.New("it has control characters")
)

// checkName checks a part of the name of a service, which may be empty.
func checkName(name string) error {
	switch {
	case strings.Contains(name, "@@"):
		return errSeparator
	case len(name) > maxName:
		return errLongName
	case hasControl(name):
		return errControl
	}
	return nil
}

// hasControl reports whether a text has control characters of ASCII.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// shortened quotes what somebody passed in, for an error.
func shortened(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
