package udppush

import (
	"errors"
	"fmt"
	"net/netip"
)

// Config is the settings of a [Sender].
type Config struct {
	Port  int            `config:"udp-port" help:"UDP port from which changes are pushed to clients of Nacos 0.9 and 1.x, and on which they acknowledge. 0 is any free port." value:"port"`
	Host  string         `config:"udp-host" help:"IP address of the UDP port." value:"address" unset:"all addresses"`
	Allow []netip.Prefix `config:"push.udp-allow" help:"Ranges to which UDP pushes may go besides the address that a client calls from: clients behind NAT or a balancer." value:"CIDR" reload:"true"`
}

// DefaultConfig is any free port on all addresses, since a socket that is bound
// to one address reaches only the clients of its network.
func DefaultConfig() Config { return Config{} }

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	if c.Port < 0 || c.Port > 65535 {
		faults = append(faults, fmt.Errorf("udp-port: %d is no port; write 0 to 65535", c.Port))
	}
	if c.Host != "" {
		if _, err := netip.ParseAddr(c.Host); err != nil {
			faults = append(faults, fmt.Errorf("udp-host: %q is no IP address", c.Host))
		}
	}
	return errors.Join(faults...)
}
