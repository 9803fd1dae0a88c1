package health

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config sets how the server judges who is alive. Start from [DefaultConfig]. The
// rules of expiry and the brake are settings of package registry.
type Config struct {
	PauseGrace time.Duration `config:"health.pause-grace" help:"How long no lease runs out after the server itself stood still for more than a second: long enough for every client to beat once. Between 0 and 10m."`

	ProbeConcurrency int            `config:"health.probe-concurrency" help:"Most probes of persistent instances that run at once; each holds one file descriptor. Between 1 and 4096."`
	ProbeRate        int            `config:"health.probe-rate" help:"Most probes begun in a second. With more persistent instances than this allows, each is probed less often. Between 1 and 100000."`
	ProbeTimeout     time.Duration  `config:"health.probe-timeout" help:"How long a probe may take, the look-up of a host name included; a MySQL command may take twice as long on top. Between 10ms and 1m."`
	ProbeMinInterval time.Duration  `config:"health.probe-min-interval" help:"Shortest time between two probes of one instance, whatever the switches tcpHealthParams, httpHealthParams and mysqlHealthParams say. Between 100ms and 1h."`
	ProbeAllow       []netip.Prefix `config:"health.probe-allow" help:"Addresses that probes may connect to." unset:"all addresses"`
	ProbeDeny        []netip.Prefix `config:"health.probe-deny" help:"Addresses that probes never connect to, even when health.probe-allow has them. An instance there keeps its health." unset:"no addresses"`
}

// DefaultConfig returns the settings of a server that was told nothing.
func DefaultConfig() Config {
	return Config{
		PauseGrace:       5 * time.Second, // the beat interval of Nacos clients
		ProbeConcurrency: 128,
		ProbeRate:        2000,
		ProbeTimeout:     500 * time.Millisecond, // Nacos' connect and read timeouts
		ProbeMinInterval: 2 * time.Second,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("health."+format, args...))
		}
	}
	span := func(key string, d, least, most time.Duration) {
		refuse(d < least || d > most, "%s: %v is not between %v and %v", key, d, least, most)
	}
	ranges := func(key string, list []netip.Prefix) {
		for _, p := range list {
			refuse(!p.IsValid(), "%s: %v is no address range", key, p)
		}
	}
	span("pause-grace", c.PauseGrace, 0, 10*time.Minute)
	refuse(c.ProbeConcurrency < 1 || c.ProbeConcurrency > 4096,
		"probe-concurrency: %d is not between 1 and 4096", c.ProbeConcurrency)
	refuse(c.ProbeRate < 1 || c.ProbeRate > 100_000, "probe-rate: %d is not between 1 and 100000", c.ProbeRate)
	span("probe-timeout", c.ProbeTimeout, 10*time.Millisecond, time.Minute)
	span("probe-min-interval", c.ProbeMinInterval, 100*time.Millisecond, time.Hour)
	ranges("probe-allow", c.ProbeAllow)
	ranges("probe-deny", c.ProbeDeny)
	return errors.Join(faults...)
}
