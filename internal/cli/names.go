package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// arguments has a command take so many arguments.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s: %d arguments do not fit; write `rollcall %s`", cmd.Name(), len(args), cmd.Use)
		}
		return nil
	}
}

const (
	defaultGroup   = "DEFAULT_GROUP"
	groupSeparator = "@@"
)

// serviceName is a service within a namespace. Both parts are set.
type serviceName struct{ group, name string }

// parseService reads service or group@@service.
func parseService(text string) (serviceName, error) {
	s := serviceName{group: defaultGroup, name: text}
	if group, name, found := strings.Cut(text, groupSeparator); found {
		s = serviceName{group, name}
	}
	if s.group == "" || s.name == "" {
		return s, &usageError{fmt.Errorf("service: %q is no name of a service; write orders or group@@orders", text)}
	}
	return s, nil
}

// grouped returns group@@service.
func (s serviceName) grouped() string { return s.group + groupSeparator + s.name }

// String returns the shortest name by which the commands know the service.
func (s serviceName) String() string {
	if s.group == defaultGroup && !strings.Contains(s.name, groupSeparator) {
		return s.name
	}
	return s.grouped()
}

// endpoint is the address of an instance.
type endpoint struct {
	host   string // without brackets
	port   string // "" when none was said
	number uint16 // of the port, 0 when none was said
}

// parseEndpoint reads host:port; an IPv6 address has brackets.
func parseEndpoint(text string) (endpoint, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return endpoint{}, &usageError{fmt.Errorf("instance: %q is no address with a port; write 10.0.0.7:8080 or [::1]:8080", text)}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return endpoint{}, &usageError{fmt.Errorf("instance: %q is no port; write a number from 0 to 65535", port)}
	}
	return endpoint{host, port, uint16(number)}, nil
}

// parseAddress reads host:port as [parseEndpoint] does, or an address alone.
func parseAddress(text string) (endpoint, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if host != "" && (net.ParseIP(host) != nil || !strings.Contains(text, ":")) {
		return endpoint{host: host}, nil
	}
	return parseEndpoint(text)
}

func (e endpoint) String() string {
	if e.port == "" {
		return e.host
	}
	return net.JoinHostPort(e.host, e.port)
}
