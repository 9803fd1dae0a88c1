package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// Config says how much of a kind of work is done. The names are the keys of scenario
// files and reports.
type Config struct {
	// Workload names the kind, Protocol how clients speak to the server.
	Workload string          `yaml:"workload" json:"workload"`
	Protocol target.Protocol `yaml:"protocol" json:"protocol"`
	// Services, and Instances of each.
	Services  int `yaml:"services" json:"services,omitempty"`
	Instances int `yaml:"instances" json:"instances,omitempty"`
	// Subscribers are told of changes.
	Subscribers int `yaml:"subscribers" json:"subscribers,omitempty"`
	// Connections are open at once, each with at most one call under way.
	Connections int `yaml:"connections" json:"connections,omitempty"`
	// Rate is units a second; 0 goes as fast as answers come.
	Rate float64 `yaml:"rate" json:"rate,omitempty"`
	// Count bounds the units; 0 is no bound.
	Count int `yaml:"count" json:"count,omitempty"`
	// Warmup goes before what is recorded, which lasts Duration.
	Warmup   time.Duration `yaml:"warmup" json:"warmup_ns,omitempty"`
	Duration time.Duration `yaml:"duration" json:"duration_ns"`
	// Mix are the shares of calls of a mixed workload.
	Mix map[string]int `yaml:"mix" json:"mix,omitempty"`
	// Distinct: no two instances have equal metadata.
	Distinct bool `yaml:"distinct" json:"distinct,omitempty"`
	// Drain is how long an instance is out of the lists before it stops.
	Drain time.Duration `yaml:"drain" json:"drain_ns,omitempty"`
	// Command restarts the server: it is run by the shell, and returns when the
	// server has been stopped and started.
	Command string `yaml:"command" json:"command,omitempty"`
}

// The bounds of what is asked for, so that a slip of the pen does not take the
// machine.
const (
	maxInstances   = 2_000_000
	maxConnections = 50_000
	maxRate        = 1_000_000
	maxDuration    = 12 * time.Hour
)

// boundClients is for work whose instances have a connection each, or a socket.
func (c *Config) boundClients() error {
	if n := c.Services * c.Instances; n > maxConnections {
		return fmt.Errorf("services times instances: %d is above %d, since each instance has a connection of its own", n, maxConnections)
	}
	return nil
}

// Complete fills in the defaults of the kind and checks the whole. A warmup that is
// not nil replaces that of the kind, be it 0.
func (c *Config) Complete(warmup *time.Duration) error {
	k, err := KindOf(c.Workload)
	if err != nil {
		return err
	}
	d := &k.Defaults
	if c.Protocol == "" {
		c.Protocol = target.HTTP
	}
	orElse(&c.Services, d.Services)
	orElse(&c.Instances, d.Instances)
	orElse(&c.Subscribers, d.Subscribers)
	orElse(&c.Connections, d.Connections)
	orElse(&c.Rate, d.Rate)
	orElse(&c.Count, d.Count)
	orElse(&c.Duration, d.Duration)
	orElse(&c.Drain, d.Drain)
	c.Warmup = d.Warmup
	if warmup != nil {
		c.Warmup = *warmup
	}
	if c.Mix == nil {
		c.Mix = d.Mix
	}
	err = errors.Join(c.uses(&k), c.bounds())
	if err == nil && k.Check != nil {
		err = k.Check(c)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Workload, err)
	}
	return nil
}

func orElse[T comparable](have *T, otherwise T) {
	var zero T
	if *have == zero {
		*have = otherwise
	}
}

// uses refuses what the kind would ignore.
func (c *Config) uses(k *Kind) error {
	var errs []error
	d := &k.Defaults
	for _, n := range []struct {
		key         string
		have, usual int
	}{
		{"services", c.Services, d.Services},
		{"instances", c.Instances, d.Instances},
		{"subscribers", c.Subscribers, d.Subscribers},
		{"connections", c.Connections, d.Connections},
		{"mix", len(c.Mix), len(d.Mix)},
		{"drain", int(c.Drain), int(d.Drain)},
	} {
		if n.have != 0 && n.usual == 0 {
			errs = append(errs, fmt.Errorf("%s: this workload has none", n.key))
		}
	}
	if c.Distinct && !k.Distincts {
		errs = append(errs, errors.New("distinct: this workload has none"))
	}
	if c.Command != "" && !k.Restarts {
		errs = append(errs, errors.New("command: this workload has none"))
	}
	return errors.Join(errs...)
}

func (c *Config) bounds() error {
	var errs []error
	between := func(key string, n, most int) {
		if n < 0 || n > most {
			errs = append(errs, fmt.Errorf("%s: %d is not between 0 and %d", key, n, most))
		}
	}
	between("services", c.Services, maxInstances)
	between("instances", c.Instances, maxInstances)
	between("services times instances", max(c.Services, 1)*max(c.Instances, 1), maxInstances)
	between("subscribers", c.Subscribers, maxConnections)
	between("connections", c.Connections, maxConnections)
	between("count", c.Count, maxInstances)
	if c.Protocol != target.HTTP && c.Protocol != target.GRPC {
		errs = append(errs, fmt.Errorf("protocol: %q is neither http nor grpc", c.Protocol))
	}
	if !(c.Rate >= 0 && c.Rate <= maxRate) {
		errs = append(errs, fmt.Errorf("rate: %v is not between 0 and %d", c.Rate, maxRate))
	}
	if c.Duration <= 0 || c.Duration > maxDuration || c.Warmup < 0 || c.Warmup > maxDuration {
		errs = append(errs, fmt.Errorf("duration %v and warmup %v: they must be above 0 and at most %v", c.Duration, c.Warmup, maxDuration))
	}
	return errors.Join(errs...)
}
