// Package report is the result of a run: a versioned form in JSON, a table for a
// terminal, a page of HTML that needs nothing else, and the comparison of runs.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// Format is the version of the JSON form. It grows when a reader of the old form
// would misread the new one.
const Format = 1

// Run is one run of the tool: all workloads on all servers.
type Run struct {
	Format  int       `json:"format"`
	Started time.Time `json:"started"`
	// Tool is the version of the program, Machine where it ran.
	Tool    string `json:"tool"`
	Machine string `json:"machine"`
	Plan    string `json:"plan"` // profile or scenario
	Seed    uint64 `json:"seed"`
	// Command is the command line, Seconds how long the whole run took.
	Command string  `json:"command,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Servers are those that were measured.
	Servers []Server `json:"servers,omitempty"`
	// Stopped says why the run ended early, empty if it did not. Left are the
	// workloads that were not begun then.
	Stopped string   `json:"stopped,omitempty"`
	Left    []string `json:"left,omitempty"`
	Results []Result `json:"results"`
}

// Server is a server that was measured.
type Server struct {
	Name string `json:"name"`
	// HTTP and GRPC are its addresses as URLs.
	HTTP string `json:"http"`
	GRPC string `json:"grpc"`
	// Version is what it says it is, Program what its process runs; both are empty
	// if that is not known.
	Version string `json:"version,omitempty"`
	Program string `json:"program,omitempty"`
}

// Result is one workload on one server, all rounds together.
type Result struct {
	Server string          `json:"server"`
	Config workload.Config `json:"config"`
	// Done units succeeded, Failed ones did not, Missed ones were due and never
	// sent. Only those done are in the figures.
	Done   int64 `json:"done"`
	Failed int64 `json:"failed,omitempty"`
	Missed int64 `json:"missed,omitempty"`
	// Seconds is the recorded time of all rounds.
	Seconds float64 `json:"seconds"`
	// Rounds is how many rounds these figures are of.
	Rounds int `json:"rounds,omitempty"`
	// Incomplete says what of the work was done when the run ended early, empty if all
	// was.
	Incomplete string `json:"incomplete,omitempty"`
	// Fault says why the figures are void: the work failed, or the server was found
	// not to have done it. FirstError is of the units that failed.
	Fault string `json:"fault,omitempty"`
	// Behind says that the fault is not the server's: the generator, or a machine that
	// is busy, did not keep up with what was to be sent.
	Behind     bool    `json:"behind,omitempty"`
	FirstError string  `json:"first_error,omitempty"`
	Checked    Checked `json:"checked"`
	// Times are what was timed; the first are the units.
	Times   []Times           `json:"times"`
	Samples []Sample          `json:"samples"`
	Figures []workload.Figure `json:"figures,omitempty"`
	// Process is what the server's process used, nil when it is not known.
	Process *Process `json:"process,omitempty"`
	// Generator is what this program used.
	Generator Generator `json:"generator"`
}

// Checked is what the verification looked at.
type Checked struct {
	Services    int `json:"services,omitempty"`
	Instances   int `json:"instances,omitempty"`
	Subscribers int `json:"subscribers,omitempty"`
}

// Times are the times of one kind, in microseconds.
type Times struct {
	Name  string  `json:"name"`
	Count int64   `json:"count"`
	Min   float64 `json:"min_us"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
	Max   float64 `json:"max_us"`
	// Curve is the whole distribution.
	Curve []Quantile `json:"curve,omitempty"`
	// P50s and P99s are those of each sample that has any.
	P50s []float64 `json:"p50s_us,omitempty"`
	P99s []float64 `json:"p99s_us,omitempty"`
}

// Quantile is a point of a distribution: so many of a hundred took at most so long.
type Quantile struct {
	Percent float64 `json:"percent"`
	Value   float64 `json:"us"`
}

// Sample is one interval of a round.
type Sample struct {
	Round     int     `json:"round,omitempty"`
	At        float64 `json:"at"` // seconds after the round began
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	Failed    int64   `json:"failed,omitempty"`
	P50       float64 `json:"p50_us"` // of the units, as are the next two
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`
	Resident  int64   `json:"resident,omitempty"` // bytes
	CPU       float64 `json:"cpu,omitempty"`      // cores of the server in use
}

// Process is what a server's process used within the recorded time.
type Process struct {
	PID        int     `json:"pid"`
	CPUSeconds float64 `json:"cpu_seconds"`
	// CPUPerUnit is in microseconds.
	CPUPerUnit float64 `json:"cpu_per_unit_us"`
	// Before is its resident memory before the workload was prepared, After at the
	// end of the recorded time, in bytes.
	Before int64 `json:"resident_before"`
	After  int64 `json:"resident_after"`
}

// Generator is what the load generator itself used, and whether it was the limit.
type Generator struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	CPUPerUnit float64 `json:"cpu_per_unit_us"`
	// LateP99 is by how much units began later than they were due although a
	// connection was free, in microseconds; 0 without a rate.
	LateP99 float64 `json:"late_p99_us,omitempty"`
}

// PerSecond is how many units were done each second.
func (r *Result) PerSecond() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Done) / r.Seconds
}

// Title names the workload with what tells it from others of its kind.
func (r *Result) Title() string { return Title(&r.Config) }

// Title names a workload with what tells it from others of its kind.
func Title(c *workload.Config) string {
	title := c.Workload
	switch {
	case c.Workload == "query":
		title = fmt.Sprintf("query of %s", thousands(float64(c.Instances)))
	case c.Subscribers > 0:
		title = fmt.Sprintf("%s to %s", c.Workload, thousands(float64(c.Subscribers)))
	case c.Workload == "fill":
		title = fmt.Sprintf("fill %s", thousands(float64(c.Services*c.Instances)))
	}
	if c.Rate > 0 && c.Workload != "fill" && c.Workload != "idle" {
		title += fmt.Sprintf(", %s/s", rate(c.Rate))
	}
	return title
}

// Missing names what of a plan has no result.
func (r *Run) Missing(work []workload.Config) []string {
	var list []string
	for i := range work {
		planned := &Result{Config: work[i]}
		if !slices.ContainsFunc(r.Results, func(have Result) bool { return have.sameWork(planned) }) {
			list = append(list, planned.Title()+" via "+string(work[i].Protocol))
		}
	}
	return list
}

// summary says what a workload does; nothing of one that this version does not know.
func summary(c *workload.Config) string {
	k, err := workload.KindOf(c.Workload)
	if err != nil {
		return ""
	}
	return k.Summary
}

// settings are what a workload was run with, in words.
func settings(c *workload.Config) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	many := func(n int, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return thousands(float64(n)) + " " + one + "s"
	}
	switch {
	case c.Services > 0 && c.Instances > 0:
		say("%s of %s", many(c.Services, "service"), many(c.Instances, "instance"))
	case c.Instances > 0:
		say("services of %s", many(c.Instances, "instance"))
	}
	if c.Subscribers > 0 {
		say("%s", many(c.Subscribers, "subscriber"))
	}
	if c.Connections > 0 {
		say("%s", many(c.Connections, "connection"))
	}
	if c.Rate > 0 {
		say("%s units due each second, whether or not the last is answered (open loop)", rate(c.Rate))
	} else if c.Connections > 0 {
		say("the next unit when the last is answered (closed loop)")
	}
	if c.Count > 0 {
		say("at most %s", many(c.Count, "unit"))
	}
	if c.Warmup > 0 {
		say("warm-up %v", c.Warmup)
	}
	say("measured for %v at most", c.Duration)
	return strings.Join(parts, ", ")
}

// sameWork reports whether two results are of the same work: all settings are equal but
// for how long it was measured, and how a server is restarted.
func (r *Result) sameWork(as *Result) bool {
	return reflect.DeepEqual(essence(r.Config), essence(as.Config))
}

// Write writes the run as JSON.
func (r *Run) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// Read reads a run that was written by this version of the form.
func Read(r io.Reader) (*Run, error) {
	var run Run
	if err := json.NewDecoder(r).Decode(&run); err != nil {
		return nil, fmt.Errorf("no saved run: %w", err)
	}
	if run.Format != Format {
		return nil, fmt.Errorf("the saved run is of form %d, this program reads form %d", run.Format, Format)
	}
	return &run, nil
}
