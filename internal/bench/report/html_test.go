package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// full is a run with everything that a page may show.
func full() *Run {
	ours, theirs, failed := result("ours", 100, 110, 105, 99, 102), result("<theirs>", 50, 51, 52, 53, 54), result("ours", 1)
	for _, r := range []*Result{&ours, &theirs} {
		r.Times[0].Curve = []Quantile{{0, 10}, {50, 20}, {90, 80}, {99, 300}, {99.9, 5000}, {100, 2e6}}
		r.Process = &Process{PID: 1, CPUPerUnit: 12.5, After: 30 << 20}
		for n := range r.Samples {
			r.Samples[n].Resident, r.Samples[n].P99 = 30<<20, 300
		}
	}
	ours.Failed, ours.FirstError = 3, `the answer is "<b>no</b>"`
	ours.Figures = []workload.Figure{{Name: "lost final states", Value: 2}, {Name: "memory", Value: 5 << 20, Unit: "B"}}
	theirs.Incomplete = "1 of 3 rounds"
	failed.Config.Workload, failed.Fault = "register", "verify: it holds nothing"
	return &Run{
		Format: Format, Plan: "p", Command: "rollcall bench --only <query>", Stopped: "stopped by interrupt", Left: []string{"beat via grpc"},
		Servers: []Server{{Name: "ours", HTTP: "http://a", GRPC: "http://b", Program: "rollcall v1", Version: "1.4.8"}}, Tool: "rollcall", Machine: "m", Results: []Result{ours, theirs, failed},
	}
}

// The page is in order, whatever the texts in it, and asks for nothing from elsewhere.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := full().HTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"query of 10", "&lt;theirs&gt;", "&lt;b&gt;no&lt;/b&gt;", "it holds nothing", "lost final states: 2", "5.0 MiB",
		"rollcall bench --only &lt;query&gt;", "Incomplete: stopped by interrupt. Not run: beat via grpc.", "rollcall v1; says that it is 1.4.8",
		"1 of 3 results failed", "incomplete: 1 of 3 rounds", "64 connections", `href="#w2"`, `id="w2"`,
		"Latency by percentile", "Units a second", "<polyline", "99.9 %", "0.5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if found := regexp.MustCompile(`(?i)src=|href="[^#]|@import|url\(|<script`).FindString(text); found != "" {
		t.Errorf("the page refers to something: %q", found)
	}
	wellFormed(t, text)
}

// Where another round begins a chart has a mark, and few times have no percentiles that
// are but the longest.
func TestRoundsAndFewUnits(t *testing.T) {
	r := result("ours", 10, 11, 12, 13)
	r.Samples[2].Round, r.Samples[3].Round = 1, 1
	r.Times[0].Count, r.Times[0].P99, r.Times[0].P999 = 99, 7000, 8000
	var page, table bytes.Buffer
	run := &Run{Results: []Result{r}}
	if err := errors.Join(run.HTML(&page), run.Table(&table)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(page.String(), `<line class="seam"`); got != 1 {
		t.Errorf("%d seams", got)
	}
	if all := page.String() + table.String(); strings.Contains(all, "7.00 ms") || strings.Contains(all, "8.00 ms") {
		t.Errorf("percentiles of 99 units in\n%s", table.String())
	}
	many := Times{Count: 999, P99: 7000, P999: 8000}
	if many.Hundredth() != "7.00 ms" || many.Thousandth() != "-" {
		t.Errorf("got %s and %s", many.Hundredth(), many.Thousandth())
	}
}

func TestHTMLOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := (&Run{Results: []Result{{}}}).HTML(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
}

// wellFormed checks that all elements are closed in their order.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.Replace(page, "<!DOCTYPE html>", "", 1)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := full().Table(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILED", "12.5 µs", "30.0 MiB", "3 of 103 units failed", "lost final states: 2", "incomplete, stopped by interrupt; not run: beat via grpc"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "register  http       1") {
		t.Error("a server that was caught has figures")
	}
}

// A generator that did not keep up is not held against the server, and one that was
// late says so.
func TestGeneratorIsTheLimit(t *testing.T) {
	behind, late, inTime := result("ours"), result("ours", 10, 10), result("ours", 10, 10)
	behind.Fault, behind.Behind, behind.Generator.CPUSeconds = "verify: the beats came too late", true, 0.97
	late.Config.Rate, late.Times[0].P99, late.Generator.LateP99 = 10, 8000, 2000
	late.Done, late.Seconds, inTime.Done, inTime.Seconds = 40, 10, 110, 10
	inTime.Config.Rate, inTime.Times[0].P99, inTime.Generator.LateP99 = 11, 8000, 100
	var text, html bytes.Buffer
	run := &Run{Results: []Result{behind, late, inTime}}
	if err := errors.Join(run.Table(&text), run.HTML(&html)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"BEHIND: verify: the beats came too late", "used 97 % of a core", "2.00 ms late or more: the times have that in them", "10 units were due each second and 4 were done"} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("want %q once in\n%s", want, text.String())
		}
	}
	if want := "of ours there are no figures, and that is not its fault"; !strings.Contains(html.String(), want) || strings.Contains(html.String(), "ours failed") {
		t.Errorf("%q is missing in the page", want)
	}
}

func TestFormat(t *testing.T) {
	for want, got := range map[string]string{
		"0": thousands(0), "999": thousands(999), "1,000": thousands(1000), "12,345,678": thousands(12345678), "-1,234": thousands(-1234.6),
		"2.5": thousands(2.5), "-": micros(0), "9.99 µs": micros(9.99), "12.3 ms": micros(12345), "1.50 s": micros(1.5e6),
		"512 B": figure(512, "B"), "20.0 KiB": figure(20480, "B"), "1.5 MiB": figure(1.5*(1<<20), "B"), "1.5s": figure(1.5, "s"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for high, want := range map[float64]float64{10: 2, 9: 2, 100: 20, 0.7: 0.1, 39: 5} {
		if got := niceStep(high); got < want*0.999 || got > want*1.001 {
			t.Errorf("the step to %v is %v, want %v", high, got, want)
		}
	}
}
