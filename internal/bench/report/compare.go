package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// Set are the results of one server in one run, under a name.
type Set struct {
	Name    string
	Results []Result
}

// Sets splits a run by its servers. With several, the names of the sets tell them
// apart; prefix goes before, unless it is empty.
func (r *Run) Sets(prefix string) []Set {
	var sets []Set
	at := map[string]int{}
	for i := range r.Results {
		server := r.Results[i].Server
		n, seen := at[server]
		if !seen {
			n = len(sets)
			at[server] = n
			sets = append(sets, Set{Name: server})
		}
		sets[n].Results = append(sets[n].Results, r.Results[i])
	}
	for n := range sets {
		switch {
		case prefix != "" && len(sets) == 1:
			sets[n].Name = prefix
		case prefix != "":
			sets[n].Name = prefix + ":" + sets[n].Name
		}
	}
	return sets
}

// Comparison is one workload that all sets have, figure by figure.
type Comparison struct {
	Title    string
	Protocol target.Protocol
	Rows     []Row
}

// Row is one figure in all sets, in their order.
type Row struct {
	Name  string
	Unit  string // "/s" or "µs"
	Cells []Cell
}

// Cell is a figure of one set, and how it stands to the first set.
type Cell struct {
	// Center is the median of the samples, and Low to High where the true median is
	// with 95 % confidence. N is the number of samples.
	Center, Low, High float64
	N                 int
	// Ratio is Center over that of the first set. RatioLow and RatioHigh bound it by
	// the ends of both intervals, which is wider than 95 %. With fewer than six samples
	// there are no ends, and RatioHigh is infinite.
	Ratio, RatioLow, RatioHigh float64
	// P is the probability of samples so different if there were no difference, by
	// the Mann-Whitney U test. Sure says that it is below 5 % and that the bounds of
	// the ratio, if there are any, leave 1 out: samples of one run depend on each
	// other, which the test by itself does not know.
	P    float64
	Sure bool
}

// confidence is that of the intervals, significance where a difference counts.
const (
	confidence   = 0.95
	significance = 0.05
)

var (
	errFewSets = errors.New("two runs or servers are needed to compare")
	errNoMatch = errors.New("no workload is in all of them with the same settings and without a fault")
)

// Compare compares the workloads that all sets have with the same settings. Figures
// are compared by their samples, so that what changes from one interval to the next
// is not taken for a difference.
func Compare(sets []Set) ([]Comparison, error) {
	if len(sets) < 2 {
		return nil, errFewSets
	}
	var list []Comparison
	for i := range sets[0].Results {
		same := []*Result{&sets[0].Results[i]}
		for _, other := range sets[1:] {
			if r := other.like(same[0]); r != nil {
				same = append(same, r)
			}
		}
		if len(same) == len(sets) && same[0].Fault == "" {
			list = append(list, compare(same))
		}
	}
	if len(list) == 0 {
		why := unmatched(sets)
		return nil, fmt.Errorf("%w%s", errNoMatch, strings.Join(append([]string{""}, why...), "\n  "))
	}
	return list, nil
}

// like returns the result of the same work, nil if there is none without a fault.
func (s *Set) like(r *Result) *Result {
	for i := range s.Results {
		have := &s.Results[i]
		if have.Fault == "" && have.sameWork(r) {
			return have
		}
	}
	return nil
}

func compare(same []*Result) Comparison {
	c := Comparison{Title: same[0].Title(), Protocol: same[0].Config.Protocol}
	c.add("per second", "/s", same, func(r *Result) []float64 {
		var list []float64
		for _, s := range r.Samples {
			if r.Config.Rate == 0 { // otherwise it is as asked for
				list = append(list, s.PerSecond)
			}
		}
		return list
	})
	c.add("server CPU", "µs", same, func(r *Result) []float64 {
		var list []float64
		for _, s := range r.Samples {
			if s.CPU > 0 && s.PerSecond > 0 {
				list = append(list, 1e6*s.CPU/s.PerSecond)
			}
		}
		return list
	})
	for n := range same[0].Times {
		times := func(r *Result) *Times {
			for i := range r.Times {
				if r.Times[i].Name == same[0].Times[n].Name {
					return &r.Times[i]
				}
			}
			return &Times{}
		}
		name := ""
		if n > 0 {
			name = same[0].Times[n].Name + ", "
		}
		c.add(name+"p50", "µs", same, func(r *Result) []float64 { return times(r).P50s })
		c.add(name+"p99", "µs", same, func(r *Result) []float64 { return times(r).P99s })
	}
	return c
}

// add adds a row, unless some result has no samples for it.
func (c *Comparison) add(name, unit string, same []*Result, samples func(*Result) []float64) {
	row := Row{Name: name, Unit: unit}
	var first *benchmath.Sample
	for _, r := range same {
		values := samples(r)
		if len(values) == 0 {
			return
		}
		s := benchmath.NewSample(values, &benchmath.DefaultThresholds)
		sum := benchmath.AssumeNothing.Summary(s, confidence)
		cell := Cell{Center: sum.Center, Low: sum.Lo, High: sum.Hi, N: len(values), Ratio: 1, RatioLow: 1, RatioHigh: 1, P: 1}
		if first == nil {
			first = s
		} else {
			cell.against(&row.Cells[0], benchmath.AssumeNothing.Compare(first, s).P)
		}
		row.Cells = append(row.Cells, cell)
	}
	c.Rows = append(c.Rows, row)
}

func (c *Cell) against(first *Cell, p float64) {
	c.P = p
	c.RatioLow, c.RatioHigh = 0, math.Inf(1)
	if first.Center > 0 {
		c.Ratio = c.Center / first.Center
	}
	if first.Low > 0 && first.High > 0 {
		c.RatioLow, c.RatioHigh = c.Low/first.High, c.High/first.Low
	}
	c.Sure = p < significance && (c.RatioLow > 1 || c.RatioHigh < 1 || math.IsInf(c.RatioHigh, 1))
}

// text is the value with its unit.
func (c *Cell) text(unit string) string {
	if unit == "µs" {
		return micros(c.Center)
	}
	return thousands(c.Center) + unit
}

// versus is the ratio to the first set, with how sure it is.
func (c *Cell) versus() string {
	switch {
	case !c.Sure && c.P < significance: // but the bounds do not bear it out
		return fmt.Sprintf("~ (%.2f to %.2f)", c.RatioLow, c.RatioHigh)
	case !c.Sure:
		return fmt.Sprintf("~ (p=%.2f)", c.P)
	case math.IsInf(c.RatioHigh, 1):
		return fmt.Sprintf("%.2f (%s)", c.Ratio, probability(c.P))
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f, %s)", c.Ratio, c.RatioLow, c.RatioHigh, probability(c.P))
}

// probability writes a p-value, which is never 0.
func probability(p float64) string {
	if p < 0.001 {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", p)
}

// WriteComparison writes the comparison of sets for a terminal, and what has no partner
// and why. A ~ stands where the samples do not show a difference.
func WriteComparison(w io.Writer, sets []Set, list []Comparison) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"workload", "via", "figure", sets[0].Name}
	for _, s := range sets[1:] {
		head = append(head, s.Name, "ratio")
	}
	fmt.Fprintln(columns, strings.Join(head, "\t")+"\t")
	for _, c := range list {
		for _, row := range c.Rows {
			cells := []string{c.Title, string(c.Protocol), row.Name, row.Cells[0].text(row.Unit)}
			for _, cell := range row.Cells[1:] {
				cells = append(cells, cell.text(row.Unit), cell.versus())
			}
			fmt.Fprintln(columns, strings.Join(cells, "\t")+"\t")
		}
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	if why := unmatched(sets); len(why) > 0 {
		_, err := fmt.Fprintf(w, "\nnot compared:\n  %s\n", strings.Join(why, "\n  "))
		return err
	}
	return nil
}
