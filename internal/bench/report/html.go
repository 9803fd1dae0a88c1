package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed report.html
var page string

// HTML writes a page about the run that needs nothing besides itself.
func (r *Run) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"thousands": thousands, "micros": micros, "mebibytes": mebibytes,
		"figure": func(value float64, unit string) string { return figure(value, unit) },
		"line":   func(n int) string { return fmt.Sprintf("c%d", n) },
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
	Sections []section
}

// section is one workload on all servers.
type section struct {
	Title, Protocol string
	Results         []*Result
	Charts          []*Chart
	Comparison      []comparedTo
}

// comparedTo is how a server stands to the first.
type comparedTo struct {
	Server string
	Rows   []comparedRow
}

type comparedRow struct{ Name, First, Here, Ratio string }

func (r *Run) view() *view {
	v := &view{Run: r, Several: r.servers() > 1}
	at := map[string]int{}
	for i := range r.Results {
		res := &r.Results[i]
		key := res.Title() + string(res.Config.Protocol) + fmt.Sprint(res.Config.Connections)
		n, seen := at[key]
		// A server that has the workload twice has it in two sections.
		if !seen || v.Sections[n].has(res.Server) {
			n = len(v.Sections)
			at[key] = n
			v.Sections = append(v.Sections, section{Title: res.Title(), Protocol: string(res.Config.Protocol)})
		}
		v.Sections[n].Results = append(v.Sections[n].Results, res)
	}
	for n := range v.Sections {
		v.Sections[n].draw(v.Several)
		v.Sections[n].compare()
	}
	return v
}

func (s *section) has(server string) bool {
	for _, r := range s.Results {
		if r.Server == server {
			return true
		}
	}
	return false
}

// draw makes the charts of what was not found void.
func (s *section) draw(several bool) {
	var curves []curve
	var rate, p99, memory []track
	for _, r := range s.Results {
		if r.Fault != "" {
			continue
		}
		for _, t := range r.Times {
			name := t.Name
			if several {
				name = r.Server + ", " + name
			}
			curves = append(curves, curve{name, t.Curve})
		}
		rate = append(rate, r.track(func(s *Sample) float64 { return s.PerSecond }))
		p99 = append(p99, r.track(func(s *Sample) float64 { return s.P99 }))
		memory = append(memory, r.track(func(s *Sample) float64 { return float64(s.Resident) }))
	}
	for _, c := range []*Chart{
		percentiles(curves),
		timeline("Units a second over time", rate, thousands),
		timeline("99th percentile of units over time", p99, micros),
		timeline("Memory of the server over time", memory, func(v float64) string { return mebibytes(int64(v)) }),
	} {
		if len(c.Lines) > 0 {
			s.Charts = append(s.Charts, c)
		}
	}
}

// track is a figure of the samples, all rounds one after the other.
func (r *Result) track(of func(*Sample) float64) track {
	t := track{name: r.Server}
	var at float64
	for i := range r.Samples {
		at += r.Samples[i].Seconds
		t.at = append(t.at, at)
		t.here = append(t.here, of(&r.Samples[i]))
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
		c := comparedTo{Server: r.Server}
		for _, row := range list[0].Rows {
			c.Rows = append(c.Rows, comparedRow{row.Name, row.Cells[0].text(row.Unit), row.Cells[1].text(row.Unit), row.Cells[1].versus()})
		}
		s.Comparison = append(s.Comparison, c)
	}
}
