package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// result is a query whose samples go through some values.
func result(server string, perSecond ...float64) Result {
	r := Result{
		Server: server, Config: workload.Config{Workload: "query", Protocol: target.HTTP, Instances: 10, Connections: 64},
		Done: 100, Seconds: 1, Times: []Times{{Name: "units", Count: 100}},
	}
	for _, v := range perSecond {
		r.Samples = append(r.Samples, Sample{PerSecond: v, Seconds: 1})
		r.Times[0].P50s = append(r.Times[0].P50s, 1e6/v)
		r.Times[0].P99s = append(r.Times[0].P99s, 2e6/v)
	}
	return r
}

func TestCompare(t *testing.T) {
	base := []float64{100, 101, 99, 102, 98, 100, 103, 97, 100, 101}
	scaled := func(f float64) []float64 {
		var list []float64
		for _, v := range base {
			list = append(list, v*f)
		}
		return list
	}
	for _, tt := range []struct {
		name  string
		other []float64
		ratio float64
		sure  bool
	}{
		{"the same", base, 1, false},
		{"a bit of noise", []float64{101, 100, 98, 103, 99, 99, 102, 98, 101, 100}, 1, false},
		{"twice", scaled(2), 2, true},
		{"a tenth less", scaled(0.9), 0.9, true},
		{"different, but by less than it wavers", []float64{60, 110, 150, 112, 114, 111, 109, 113, 160, 70}, 1.115, false},
		{"too few samples to tell", []float64{200}, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Compare([]Set{{"a", []Result{result("x", base...)}}, {"b", []Result{result("x", tt.other...)}}})
			if err != nil || len(list) != 1 || len(list[0].Rows) != 3 {
				t.Fatalf("got %+v, %v", list, err)
			}
			cell := list[0].Rows[0].Cells[1]
			if math.Abs(cell.Ratio-tt.ratio) > 0.01 || cell.Sure != tt.sure || tt.sure && (cell.RatioLow > tt.ratio || cell.RatioHigh < tt.ratio) {
				t.Errorf("got %+v", cell)
			}
			if p50 := list[0].Rows[1].Cells[1]; math.Abs(p50.Ratio*tt.ratio-1) > 0.03 {
				t.Errorf("p50: got %+v", p50)
			}
		})
	}
}

func TestComparesWhatIsAlike(t *testing.T) {
	one := result("x", 1, 2, 3)
	other, elsewhere, mixed := one, one, one
	other.Config.Instances = 1000
	elsewhere.Config.Services = 1000
	mixed.Config.Mix = map[string]int{"query": 1}
	failed := one
	failed.Fault = "it cheats"
	for name, sets := range map[string][]Set{
		"another workload": {{"a", []Result{one}}, {"b", []Result{other}}},
		"more services":    {{"a", []Result{one}}, {"b", []Result{elsewhere}}},
		"another mix":      {{"a", []Result{one}}, {"b", []Result{mixed}}},
		"a fault":          {{"a", []Result{one}}, {"b", []Result{failed}}},
		"nothing":          {{"a", nil}, {"b", nil}},
	} {
		if _, err := Compare(sets); !errors.Is(err, errNoMatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	longer := one
	longer.Config.Duration = 1
	if list, err := Compare([]Set{{"a", []Result{one}}, {"b", []Result{longer}}}); err != nil || len(list) != 1 {
		t.Errorf("measured for longer: got %v, %v", list, err)
	}
	if _, err := Compare([]Set{{"a", []Result{one}}}); !errors.Is(err, errFewSets) {
		t.Errorf("one set: got %v", err)
	}
}

func TestWriteComparison(t *testing.T) {
	run := Run{Results: []Result{result("ours", 100, 101, 102, 103, 104), result("theirs", 50, 51, 52, 53, 54)}}
	sets := run.Sets("")
	list, err := Compare(sets)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteComparison(&b, sets, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ours", "theirs", "query of 10", "per second", "102/s", "52/s", "0.51 ("} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// What has no partner is named, with the setting that differs.
func TestUnmatched(t *testing.T) {
	one, alone, failed := result("x", 1, 2, 3), result("x", 1), result("x", 1)
	more := one
	more.Config.Services, more.Config.Duration = 50, 7
	alone.Config.Workload = "beat"
	failed.Config.Instances, failed.Fault = 1, "it cheats"
	fine := failed
	fine.Fault = ""
	sets := []Set{{"a", []Result{one, alone, fine}}, {"b", []Result{more, failed}}}
	_, err := Compare(sets)
	for _, want := range []string{
		"query of 10 via http of a: b has it with other settings: services 50, not 0\n",
		"beat via http of a: b has none", "query of 1 via http of a: b failed in it",
		"query of 10 via http of b: a has it with other settings: services 0, not 50",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	same := []Set{{"a", []Result{one, alone}}, {"b", []Result{one}}}
	list, err := Compare(same)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteComparison(&b, same, list); err != nil || !strings.Contains(b.String(), "not compared:\n  beat via http of a: b has none") {
		t.Errorf("got %s, %v", b.String(), err)
	}
}

func TestRate(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.001: "0.001", 0.25: "0.25", 2: "2", 3.45: "3.5", 1_000_000: "1,000,000"} {
		if got := rate(f); got != want {
			t.Errorf("%v is written %s", f, got)
		}
	}
}

func TestProbability(t *testing.T) {
	for p, want := range map[float64]string{0: "p<0.001", 0.0009: "p<0.001", 0.02: "p=0.020"} {
		if got := probability(p); got != want {
			t.Errorf("%v is written %s", p, got)
		}
	}
}

func TestSets(t *testing.T) {
	one, two := Run{Results: []Result{result("a", 1)}}, Run{Results: []Result{result("a", 1), result("b", 1), result("a", 2)}}
	names := func(sets []Set) string {
		var list []string
		for _, s := range sets {
			list = append(list, s.Name)
		}
		return strings.Join(list, " ")
	}
	for want, sets := range map[string][]Set{"a": one.Sets(""), "x.json": one.Sets("x.json"), "a b": two.Sets(""), "x:a x:b": two.Sets("x")} {
		if got := names(sets); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if n := len(two.Sets("")[0].Results); n != 2 {
		t.Errorf("the first server has %d results", n)
	}
}

func TestReadAndWrite(t *testing.T) {
	var b bytes.Buffer
	run := &Run{Format: Format, Plan: "p", Results: []Result{result("a", 1, 2)}}
	if err := run.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil || len(got.Results) != 1 || got.Results[0].Title() != "query of 10" || len(got.Results[0].Samples) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"format":2}`, "x"} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is a run", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":1,"results":[{"server":"a","config":{"workload":"query"},"times":[{"name":"units"}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		run, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if err := run.Table(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		if err := run.HTML(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}
