package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

func TestProfiles(t *testing.T) {
	used := map[string]bool{}
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err != nil || p.Name != name || p.Rounds < 1 || p.Seed != DefaultSeed {
			t.Errorf("%s: got %+v, %v", name, p, err)
			continue
		}
		for _, w := range p.Work {
			used[w.Workload] = true
		}
	}
	for _, k := range workload.Kinds() {
		if !used[k.Name] && !k.Restarts {
			t.Errorf("no profile has %s", k.Name)
		}
	}
	if _, err := Profile("../plan"); err == nil {
		t.Error("a path is a profile")
	}
}

func TestParse(t *testing.T) {
	p, err := Parse([]byte(`
name: mine
seed: 7
rounds: 3
defaults:
  protocol: [http, grpc]
  connections: 5
  warmup: 0s
  duration: 3s
workloads:
  - workload: query
    instances: 1
    rate: 100.5
  - workload: fanout
    protocol: grpc
    subscribers: 10
  - workload: restart
    protocol: http
    command: make restart
`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "mine" || p.Seed != 7 || p.Rounds != 3 || len(p.Work) != 4 {
		t.Fatalf("got %+v", p)
	}
	query, fanout := p.Work[1], p.Work[2]
	if query.Protocol != target.GRPC || query.Instances != 1 || query.Services != 100 || query.Connections != 5 ||
		query.Rate != 100.5 || query.Warmup != 0 || query.Duration != 3*time.Second {
		t.Errorf("got %+v", query)
	}
	if fanout.Connections != 1 || fanout.Subscribers != 10 || fanout.Duration != 10*time.Second {
		t.Errorf("got %+v", fanout)
	}
}

func TestParseRefuses(t *testing.T) {
	const some = "workloads:\n  - workload: query\n"
	for text, want := range map[string]string{
		"":                                                   "empty",
		"x: 1\n" + some:                                      "field x not found",
		some + "    instance: 3\n":                           "field instance not found",
		some + "    subscribers: 3\n":                        "query: subscribers: this workload has none",
		some + "    command: reboot\n":                       "query: command: this workload has none",
		some + "    mix: {query: 1}\n":                       "mix: this workload has none",
		some + "    rate: -1\n":                              "rate: -1",
		some + "    rate: .nan\n":                            "rate: NaN",
		some + "    duration: 3\n":                           "cannot unmarshal",
		some + "    duration: 99h\n":                         "duration",
		some + "    protocol: udp\n":                         "is neither http nor grpc",
		some + "    protocol: []\n":                          "name http, grpc or both",
		some + "    connections: 1e9\n":                      "connections",
		some + "---\n" + some:                                "more than one document",
		"workloads: []\n":                                    "there are 0",
		"rounds: 5000\n" + some:                              "rounds",
		"workloads:\n  - workload: nap":                      `"nap" is none`,
		"workloads:\n  - {workload: mixed, mix: {sleep: 1}}": "mix",
		"workloads:\n  - {workload: mixed, mix: {query: 0}}": "mix",
		"workloads:\n  - {workload: register, duration: 1m}": "do not beat",
		"workloads:\n  - {workload: register, protocol: grpc, instances: 100}":           "at most as many as connections",
		"workloads:\n  - {workload: beat, rate: 1}":                                      "at least",
		"workloads:\n  - {workload: rollout, instances: 1}":                              "at least 2",
		"workloads:\n  - {workload: storm, services: 10000}":                             "a connection of its own",
		some + "    instances: 0\n":                                                      "query: instances: 0 is not above 0",
		"defaults: {duration: 0s}\n" + some:                                              "query: duration: 0",
		"workloads:\n  - {workload: fanout, subscribers: 0}":                             "subscribers: 0",
		"workloads:\n  - {workload: idle, rate: 3}":                                      "leave it out",
		"rounds: 0\n" + some:                                                             "rounds",
		"workloads:\n  - {workload: fill, services: 1000000, instances: 100}":            "services times instances",
		"workloads:\n  - {workload: query, services: 4000000000, instances: 4000000000}": "services",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestApply(t *testing.T) {
	smoke := func() *Plan {
		p, err := Profile("smoke")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	zero := time.Duration(0)
	p := smoke()
	err := p.Apply(&Change{Only: []string{"query", "fanout"}, Protocol: target.GRPC, Connections: 3, Rate: 50, Duration: 4 * time.Second, Warmup: &zero})
	if err != nil || len(p.Work) != 2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	if q := p.Work[0]; q.Rate != 50 || q.Connections != 3 || q.Duration != 4*time.Second || q.Warmup != 0 {
		t.Errorf("got %+v", q)
	}
	if f := p.Work[1]; f.Rate != 5 || f.Connections != 1 {
		t.Errorf("a rate of its own was changed: %+v", f)
	}
	p = smoke()
	if err := p.Apply(&Change{Only: []string{"restart"}, Command: "true"}); err != nil || len(p.Work) != 2 || p.Work[1].Command != "true" {
		t.Errorf("got %+v, %v", p, err)
	}
	p, err = Parse([]byte("workloads: [{workload: restart, services: 3}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(&Change{Command: "true"}); err != nil || p.Work[0].Command != "true" || p.Work[0].Services != 3 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, tt := range []struct {
		change Change
		want   string
	}{
		{Change{Only: []string{"nap"}}, "has no workload"},
		{Change{Only: []string{"restart"}}, "--restart-command"},
		{Change{Connections: -1}, "connections"},
		{Change{Duration: -time.Second}, "duration"},
		{Change{Count: -1}, "count"},
		{Change{Only: []string{"fanout", "storm"}, Rate: 7}, "rate"},
		{Change{Only: []string{"rollout"}, Connections: 7}, "connections"},
	} {
		p, err := Profile("smoke")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Apply(&tt.change); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.change, err, tt.want)
		}
	}
	p, err := Parse([]byte("workloads: [{workload: restart}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(&Change{}); !errors.Is(err, errNoCommand) {
		t.Errorf("without a command: got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Profiles() {
		text, err := profiles.ReadFile("profiles/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if len(p.Work) == 0 || len(p.Work) > 2*maxWork || p.Rounds < 1 {
			t.Errorf("got %+v", p)
		}
		for _, w := range p.Work {
			again := w
			if err := again.Complete(&w.Warmup); err != nil {
				t.Errorf("what was complete is not: %v", err)
			}
		}
	})
}
