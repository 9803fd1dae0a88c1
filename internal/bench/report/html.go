package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

//go:embed report.html
var page string

// HTML writes a page about the run that needs nothing besides itself.
func (r *Run) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"thousands": thousands, "micros": micros, "mebibytes": mebibytes, "figure": figure,
		"many":   func(n int64) string { return thousands(float64(n)) },
		"count":  func(n int) string { return thousands(float64(n)) },
		"length": func(seconds float64) string { return (time.Duration(seconds) * time.Second).String() },
		"time":   func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, r.view())
}

// view is the run as the page shows it.
type view struct {
	*Run
	Several  bool // there are several servers
	Void     int  // results without figures
	Sections []*section
}

// section is one workload on all servers.
type section struct {
	ID, Title, Protocol string
	Summary, Settings   string
	Results             []*Result
	Charts              []*Chart
	Comparison          []comparedTo
}

// comparedTo is how a server stands to the first.
type comparedTo struct {
	First, Server string
	Rows          []comparedRow
}

type comparedRow struct{ Name, First, Here, Ratio string }

func (r *Run) view() *view {
	v := &view{Run: r, Several: r.servers() > 1}
	for i := range r.Results {
		res := &r.Results[i]
		if res.Fault != "" {
			v.Void++
		}
		s := v.section(res)
		s.Results = append(s.Results, res)
	}
	for _, s := range v.Sections {
		s.draw(v.Several)
		s.compare()
	}
	return v
}

// section returns the section of a result. A server that has the workload twice has it
// in two sections.
func (v *view) section(r *Result) *section {
	for _, s := range v.Sections {
		if same := s.Results[0]; same.sameWork(r) && !s.has(r.Server) {
			return s
		}
	}
	s := &section{
		ID: fmt.Sprintf("w%d", len(v.Sections)+1), Title: r.Title(), Protocol: string(r.Config.Protocol),
		Summary: summary(&r.Config), Settings: settings(&r.Config),
	}
	v.Sections = append(v.Sections, s)
	return s
}

// Anchor is the section that tells of a result.
func (v *view) Anchor(r *Result) string {
	for _, s := range v.Sections {
		if slices.Contains(s.Results, r) {
			return "#" + s.ID
		}
	}
	return "#"
}

// Rows are the results, for the table.
func (v *view) Rows() []*Result {
	var list []*Result
	for i := range v.Results {
		list = append(list, &v.Results[i])
	}
	return list
}

func (s *section) has(server string) bool {
	return slices.ContainsFunc(s.Results, func(r *Result) bool { return r.Server == server })
}

// Timed reports whether there is a table of times to show.
func (s *section) Timed() bool {
	return slices.ContainsFunc(s.Results, func(r *Result) bool { return r.Fault == "" && len(r.Times) > 0 })
}

// draw makes the charts of what was not found void.
func (s *section) draw(several bool) {
	var curves []curve
	var rate, p99, memory []track
	for n, r := range s.Results {
		if r.Fault != "" {
			continue
		}
		for k, t := range r.Times {
			c := curve{name: t.Name, style: style{colour: k}, points: t.Curve}
			if several {
				c.name, c.style = r.Server+", "+t.Name, style{colour: n, dash: k}
			}
			curves = append(curves, c)
		}
		rate = append(rate, r.track(n, func(s *Sample) float64 { return s.PerSecond }))
		p99 = append(p99, r.track(n, func(s *Sample) float64 { return s.P99 }).without(0))
		memory = append(memory, r.track(n, func(s *Sample) float64 { return float64(s.Resident) }).without(0))
	}
	for _, c := range []*Chart{
		percentiles(curves),
		timeline("Units a second", "Units that ended in each interval. A dip is a pause of the server, of the generator or of the machine.", rate, 1, thousands),
		timeline("99th percentile of units", "What the slowest hundredth of each interval took at least: a bad moment shows here and hardly in the whole.", p99, 1, axisTime),
		timeline("Memory of the server", "Resident memory of its process.", memory, 1<<20, func(v float64) string { return thousands(v/(1<<20)) + " MiB" }),
	} {
		if len(c.Lines) > 0 {
			s.Charts = append(s.Charts, c)
		}
	}
}

// track is a figure of the samples of server n, all rounds one after the other, each
// in the middle of its interval.
func (r *Result) track(n int, of func(*Sample) float64) track {
	t := track{name: r.Server, style: style{colour: n}}
	var at float64
	for i := range r.Samples {
		s := &r.Samples[i]
		if i > 0 && s.Round != r.Samples[i-1].Round {
			t.seams = append(t.seams, at)
		}
		t.at = append(t.at, at+s.Seconds/2)
		t.here = append(t.here, of(s))
		at += s.Seconds
	}
	return t
}

// compare compares each server with the first.
func (s *section) compare() {
	for _, r := range s.Results[1:] {
		list, err := Compare([]Set{{s.Results[0].Server, []Result{*s.Results[0]}}, {r.Server, []Result{*r}}})
		if err != nil {
			continue // one of them has no figures
		}
		c := comparedTo{First: s.Results[0].Server, Server: r.Server}
		for _, row := range list[0].Rows {
			c.Rows = append(c.Rows, comparedRow{row.Name, row.Cells[0].text(row.Unit), row.Cells[1].text(row.Unit), row.Cells[1].versus()})
		}
		s.Comparison = append(s.Comparison, c)
	}
}
