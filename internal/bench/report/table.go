package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes the run for a terminal: a line for each workload and server, and what
// else is to be said below.
func (r *Run) Table(w io.Writer) error {
	several := r.servers() > 1
	head := []string{"workload", "via", "per second", "p50", "p99", "p99.9", "longest", "server CPU", "memory", "errors"}
	if several {
		head = append([]string{"server"}, head...)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columns, strings.Join(head, "\t")+"\t")
	for i := range r.Results {
		cells := r.Results[i].Cells()
		if several {
			cells = append([]string{r.Results[i].Server}, cells...)
		}
		fmt.Fprintln(columns, strings.Join(cells, "\t")+"\t")
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for i := range r.Results {
		if err := r.Results[i].remarks(w, several); err != nil {
			return err
		}
	}
	if len(r.Left) > 0 {
		_, err := fmt.Fprintf(w, "\nincomplete, %s; not run: %s\n", r.Stopped, strings.Join(r.Left, "; "))
		return err
	}
	return nil
}

func (r *Run) servers() int {
	names := map[string]bool{}
	for i := range r.Results {
		names[r.Results[i].Server] = true
	}
	return len(names)
}

// Cells are the columns of the table. A result whose verification failed has no
// figures.
func (r *Result) Cells() []string {
	if r.Fault != "" {
		return []string{r.Title(), string(r.Config.Protocol), r.outcome(), "-", "-", "-", "-", "-", "-", thousands(float64(r.Failed))}
	}
	var t Times
	if len(r.Times) > 0 {
		t = r.Times[0]
	}
	cpu, memory := "-", "-"
	if p := r.Process; p != nil {
		cpu, memory = micros(p.CPUPerUnit), mebibytes(p.After)
	}
	return []string{
		r.Title(), string(r.Config.Protocol), rate(r.PerSecond()),
		micros(t.P50), t.Hundredth(), t.Thousandth(), micros(t.Max), cpu, memory, thousands(float64(r.Failed + r.Missed)),
	}
}

// Hundredth is the 99th percentile, and Thousandth the 99.9th: as text, and a dash where
// there are too few times to have one, so that it would be the longest once more.
func (t *Times) Hundredth() string { return t.percentile(t.P99, 100) }

// Thousandth is told with Hundredth.
func (t *Times) Thousandth() string { return t.percentile(t.P999, 1000) }

func (t *Times) percentile(us float64, least int64) string {
	if t.Count < least {
		return "-"
	}
	return micros(us)
}

// reached is the share of a rate from which on it counts as kept.
const reached = 0.9

// outcome is what stands in place of figures that are void.
func (r *Result) outcome() string {
	if r.Behind {
		return "BEHIND"
	}
	return "FAILED"
}

// Why words the fault: whose it is, and what it is.
func (r *Result) Why() string {
	if r.Behind {
		return "of " + r.Server + " there are no figures, and that is not its fault: " + r.Fault
	}
	return r.Server + " failed, so that it has no figures: " + r.Fault
}

// Units is how many units were done.
func (r *Result) Units() float64 { return float64(r.Done) }

// remarks writes what the line has no room for.
func (r *Result) remarks(w io.Writer, several bool) error {
	title := r.Title() + " via " + string(r.Config.Protocol)
	if several {
		title = r.Server + ", " + title
	}
	lines := append(r.others(), r.Remarks()...)
	if r.Fault != "" {
		lines = append([]string{r.outcome() + ": " + r.Fault}, lines...)
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
	return err
}

// others are the figures besides those of the units.
func (r *Result) others() []string {
	var lines []string
	if r.Fault == "" {
		for _, t := range r.rest() {
			lines = append(lines, fmt.Sprintf("%s: p50 %s, p99 %s, p99.9 %s, longest %s of %s",
				t.Name, micros(t.P50), t.Hundredth(), t.Thousandth(), micros(t.Max), thousands(float64(t.Count))))
		}
	}
	for _, f := range r.Figures {
		lines = append(lines, f.Name+": "+figure(f.Value, f.Unit))
	}
	return lines
}

// Remarks are what is to be known about how a result came about: errors, and what
// was the limit.
func (r *Result) Remarks() []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Incomplete != "" {
		say("incomplete: %s", r.Incomplete)
	}
	if r.FirstError != "" && r.Failed == 0 {
		say("units failed before the clock ran, the first: %s", r.FirstError)
	} else if r.FirstError != "" {
		say("%s of %s units failed, the first: %s", thousands(float64(r.Failed)), thousands(float64(r.Failed+r.Done)), r.FirstError)
	}
	if r.Missed > 0 {
		say("%s units were due and never sent, so far behind was the server", thousands(float64(r.Missed)))
	}
	if asked := r.Config.Rate; r.Fault == "" && asked > 0 && r.PerSecond() < reached*asked {
		say("%s units were due each second and %s were done: the times have the wait in them, and grow the longer it lasts", rate(asked), rate(r.PerSecond()))
	}
	if r.Generator.late(r) {
		say("the generator itself began a hundredth of the units %s late or more: the times have that in them", micros(r.Generator.LateP99))
	}
	if r.Behind && r.Seconds > 0 {
		say("the generator used %.0f %% of a core", 100*r.Generator.CPUSeconds/r.Seconds)
	} else if r.Generator.limits(r) {
		say("the generator used %.0f %% of a core: it may have been the limit", 100*r.Generator.CPUSeconds/r.Seconds)
	}
	return lines
}

// rest are the times beside those of the units.
func (r *Result) rest() []Times {
	if len(r.Times) < 2 {
		return nil
	}
	return r.Times[1:]
}

// late reports whether the generator was so late by itself that it shows in the times
// of an open loop.
func (g *Generator) late(r *Result) bool {
	const shows, share = 1000, 0.25 // microseconds, and of the 99th percentile
	return r.Config.Rate > 0 && len(r.Times) > 0 && g.LateP99 >= shows && g.LateP99 >= share*r.Times[0].P99
}

// limits reports whether the generator was busy for nearly all of the time of a
// closed loop.
func (g *Generator) limits(r *Result) bool {
	return r.Config.Rate == 0 && r.Seconds > 0 && g.CPUSeconds/r.Seconds > 0.9
}
