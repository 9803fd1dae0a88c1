// Package plan says what a run consists of: the built-in profiles, and scenario files
// for mixes of one's own. Its functions are safe for concurrent use.
package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// Plan is what is run on each server.
type Plan struct {
	// Name is that of the profile, or what the scenario calls itself.
	Name string
	// Seed of names, orders and mixes.
	Seed uint64
	// Rounds is how often everything is run.
	Rounds int
	// Work are the workloads in their order, complete.
	Work []workload.Config
}

// The bounds of a scenario.
const (
	maxWork   = 500
	maxRounds = 1000
)

// file is the form of a scenario file.
type file struct {
	Name      string  `yaml:"name"`
	Seed      *uint64 `yaml:"seed"`
	Rounds    *int    `yaml:"rounds"`
	Defaults  common  `yaml:"defaults"`
	Workloads []entry `yaml:"workloads"`
}

// common is what the workloads of a file have unless they say otherwise. All but the
// protocol is for those that have a warmup: their units are calls, and may be as many
// as one likes. What the others do takes its time.
type common struct {
	Protocols   protocols      `yaml:"protocol"`
	Connections *int           `yaml:"connections"`
	Warmup      *time.Duration `yaml:"warmup"`
	Duration    *time.Duration `yaml:"duration"`
}

// entry is a workload, once for each of its protocols. What is nil is not said.
type entry struct {
	Workload    string         `yaml:"workload"`
	Protocols   protocols      `yaml:"protocol"`
	Services    *int           `yaml:"services"`
	Instances   *int           `yaml:"instances"`
	Subscribers *int           `yaml:"subscribers"`
	Connections *int           `yaml:"connections"`
	Rate        *float64       `yaml:"rate"`
	Count       *int           `yaml:"count"`
	Warmup      *time.Duration `yaml:"warmup"`
	Duration    *time.Duration `yaml:"duration"`
	Distinct    bool           `yaml:"distinct"`
	Drain       *time.Duration `yaml:"drain"`
	Mix         map[string]int `yaml:"mix"`
	Command     string         `yaml:"command"`
}

// take stores what a key says; one that says 0 would be taken for one that is left out.
func take[T int | float64 | time.Duration](to *T, said *T, key string) error {
	switch {
	case said == nil:
		return nil
	case *said == 0:
		return fmt.Errorf("%s: 0 is not above 0; leave it out for what is usual", key)
	}
	*to = *said
	return nil
}

// protocols is one protocol or a list of them.
type protocols []target.Protocol

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *protocols) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*p = protocols{target.Protocol(node.Value)}
		return nil
	}
	return node.Decode((*[]target.Protocol)(p))
}

// DefaultSeed is the seed when none is given.
const DefaultSeed = 1

// Parse reads a scenario file. A key that is none is an error that names it, as is
// one that the workload would not use.
func Parse(text []byte) (*Plan, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var f file
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the scenario is empty")
		}
		return nil, fmt.Errorf("scenario: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("scenario: there is more than one document")
	}
	p := &Plan{Name: f.Name, Seed: DefaultSeed, Rounds: 1}
	if p.Name == "" {
		p.Name = "scenario"
	}
	if f.Seed != nil {
		p.Seed = *f.Seed
	}
	if f.Rounds != nil {
		p.Rounds = *f.Rounds
	}
	if err := p.boundRounds(); err != nil {
		return nil, err
	}
	if len(f.Workloads) == 0 || len(f.Workloads) > maxWork {
		return nil, fmt.Errorf("workloads: there are %d, not between 1 and %d", len(f.Workloads), maxWork)
	}
	for n, e := range f.Workloads {
		list, err := e.configs(&f.Defaults)
		if err != nil {
			return nil, fmt.Errorf("workload %d: %w", n+1, err)
		}
		p.Work = append(p.Work, list...)
	}
	return p, nil
}

// configs returns the complete workload for each protocol.
func (e *entry) configs(d *common) ([]workload.Config, error) {
	over := e.Protocols
	if over == nil {
		over = d.Protocols
	}
	if over == nil {
		over = protocols{target.HTTP}
	}
	if len(over) == 0 || len(over) > 2 {
		return nil, errors.New("protocol: name http, grpc or both")
	}
	c := workload.Config{Workload: e.Workload, Distinct: e.Distinct, Mix: e.Mix, Command: e.Command}
	warmup, err := e.fill(&c, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Workload, err)
	}
	var list []workload.Config
	for _, protocol := range over {
		one := c
		one.Protocol = protocol
		if err := one.Complete(warmup); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// fill takes what the entry says, or the file for all, and returns the warmup, nil if
// nobody says it.
func (e *entry) fill(c *workload.Config, d *common) (warmup *time.Duration, err error) {
	connections, duration, warmup := e.Connections, e.Duration, e.Warmup
	if k, err := workload.KindOf(e.Workload); err == nil && k.Defaults.Warmup > 0 {
		connections, duration, warmup = cmp.Or(connections, d.Connections), cmp.Or(duration, d.Duration), cmp.Or(warmup, d.Warmup)
	}
	return warmup, errors.Join(
		take(&c.Services, e.Services, "services"),
		take(&c.Instances, e.Instances, "instances"),
		take(&c.Subscribers, e.Subscribers, "subscribers"),
		take(&c.Connections, connections, "connections"),
		take(&c.Rate, e.Rate, "rate"),
		take(&c.Count, e.Count, "count"),
		take(&c.Duration, duration, "duration"),
		take(&c.Drain, e.Drain, "drain"),
	)
}

func (p *Plan) boundRounds() error {
	if p.Rounds < 1 || p.Rounds > maxRounds {
		return fmt.Errorf("rounds: %d is not between 1 and %d", p.Rounds, maxRounds)
	}
	return nil
}
