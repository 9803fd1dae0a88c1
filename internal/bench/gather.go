package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// meter reads what the server and we ourselves use. Its methods may be called by
// several goroutines.
type meter struct {
	pid int

	mu           sync.Mutex
	server, self process.Usage // at the beginning
	last         process.Usage // of the server, at the last sample
}

// used is what was used within the recorded time.
type used struct {
	server, self time.Duration
	resident     int64 // 0 when the process is not known, or has gone
}

func newMeter(pid int) *meter {
	m := &meter{pid: pid}
	m.begin()
	return m
}

// begin begins anew.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server, _ = process.Read(m.pid) // zero where nothing is known
	m.self, _ = process.Read(process.Self())
	m.last = m.server
}

// sample adds to an interval what the server used in it.
func (m *meter) sample(i *load.Interval) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := process.Read(m.pid)
	if err != nil {
		return
	}
	i.Resident, i.CPU = now.Resident, max(now.CPU-m.last.CPU, 0)
	m.last = now
}

func (m *meter) end() used {
	m.mu.Lock()
	defer m.mu.Unlock()
	server, _ := process.Read(m.pid)
	self, _ := process.Read(process.Self())
	return used{max(server.CPU-m.server.CPU, 0), self.CPU - m.self.CPU, server.Resident}
}

// gathered is a workload on a server, as far as its rounds have run.
type gathered struct {
	target *target.Target
	config *workload.Config
	pid    int // of the server in the last round, 0 if it is not known
	result report.Result
	names  []string // of the times, in their order
	times  map[string]*hdrhistogram.Histogram
	points map[string][]load.Point
	used   used
	before int64
	late   *hdrhistogram.Histogram
	sums   map[string]int // where a figure is
	rounds int
}

func newGathered(t *target.Target, c *workload.Config) *gathered {
	return &gathered{
		target: t, config: c, result: report.Result{Server: t.Name, Config: *c},
		times: map[string]*hdrhistogram.Histogram{}, points: map[string][]load.Point{}, sums: map[string]int{},
	}
}

// fail makes the result void, unless ctx has ended, whose error it returns.
func (g *gathered) fail(ctx context.Context, stage string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.result.Fault = fmt.Sprintf("%s: %v", stage, err)
	return nil
}

// nothing says why there are no units: they failed, or all the time went by with what was
// due before the clock ran.
func (g *gathered) nothing(ctx context.Context, out *load.Outcome) error {
	switch {
	case out.Missed == 0 && out.Fault == nil && g.config.Rate > 0:
		return g.fail(ctx, "run", fmt.Errorf("%w: of %v units a second none was due within the %v that were measured", errNothing, g.config.Rate, g.config.Duration))
	case out.Missed == 0 || out.Fault != nil:
		return g.fail(ctx, "run", errors.Join(errNothing, out.Fault))
	}
	g.result.Behind = true
	return g.fail(ctx, "run", fmt.Errorf("of %.0f units a second over %d connections none that was due in the recorded time was begun, "+
		"since those of the warm-up took all of it: ask for a lower rate, more connections or a shorter warm-up",
		g.config.Rate, max(g.config.Connections, 1)))
}

// behind says whether it was for the generator that a verification failed, and what
// it was busy with.
func (g *gathered) behind(err error, out *load.Outcome, u used) {
	g.result.Behind = errors.Is(err, workload.ErrBehind)
	g.result.Seconds, g.used.self = out.Elapsed.Seconds(), u.self
}

// usage returns what the server uses now; nothing if that is not known.
func (g *gathered) usage() process.Usage {
	u, _ := process.Read(g.pid)
	return u
}

// roundResult is what one round measured.
type roundResult struct {
	round   int
	out     *load.Outcome
	rec     *load.Recorder
	late    *load.Series
	used    used
	before  process.Usage
	checked workload.Checked
	figures []workload.Figure
}

func (g *gathered) add(r *roundResult) {
	res := &g.result
	res.Done += r.out.Done
	res.Failed += r.out.Failed
	res.Missed += r.out.Missed
	res.Seconds += r.out.Elapsed.Seconds()
	if r.out.Fault != nil && res.FirstError == "" {
		res.FirstError = r.out.Fault.Error()
	}
	res.Checked.Services += r.checked.Services
	res.Checked.Instances += r.checked.Instances
	res.Checked.Subscribers += r.checked.Subscribers
	for _, s := range r.rec.All() {
		h, points := s.Result()
		if g.times[s.Name] == nil {
			g.names = append(g.names, s.Name)
			g.times[s.Name] = h
		} else {
			g.times[s.Name].Merge(h)
		}
		g.points[s.Name] = append(g.points[s.Name], points...)
	}
	g.samples(r)
	g.figures(r.figures)
	g.used.server += r.used.server
	g.used.self += r.used.self
	g.used.resident = r.used.resident
	if g.rounds == 0 {
		g.before = r.before.Resident
		g.late, _ = r.late.Result()
	} else {
		more, _ := r.late.Result()
		g.late.Merge(more)
	}
	g.rounds++
}

// samples joins the intervals with the points of the units.
func (g *gathered) samples(r *roundResult) {
	_, points := r.rec.All()[0].Result()
	for n, i := range r.out.Intervals {
		s := report.Sample{
			Round: r.round, At: i.At.Seconds(), Seconds: i.Length.Seconds(),
			PerSecond: float64(i.Done) / i.Length.Seconds(), Failed: i.Failed,
			Resident: i.Resident, CPU: i.CPU.Seconds() / i.Length.Seconds(),
		}
		if n < len(points) {
			s.P50, s.P99, s.Max = micros(points[n].P50), micros(points[n].P99), micros(points[n].Max)
		}
		g.result.Samples = append(g.result.Samples, s)
	}
}

// figures adds up counts; of everything else the last round's value stays.
func (g *gathered) figures(list []workload.Figure) {
	for _, f := range list {
		at, seen := g.sums[f.Name]
		switch {
		case !seen:
			g.sums[f.Name] = len(g.result.Figures)
			g.result.Figures = append(g.result.Figures, f)
		case f.Unit == "":
			g.result.Figures[at].Value += f.Value
		default:
			g.result.Figures[at] = f
		}
	}
}

func (g *gathered) finish() report.Result {
	r := &g.result
	r.Rounds = g.rounds
	units := float64(max(r.Done, 1))
	for _, name := range g.names {
		r.Times = append(r.Times, timesOf(name, g.times[name], g.points[name]))
	}
	if g.pid != 0 && g.rounds > 0 && g.used.resident > 0 {
		r.Process = &report.Process{
			PID: g.pid, CPUSeconds: g.used.server.Seconds(), CPUPerUnit: micros(g.used.server) / units,
			Before: g.before, After: g.used.resident,
		}
	}
	r.Generator = report.Generator{CPUSeconds: g.used.self.Seconds(), CPUPerUnit: micros(g.used.self) / units}
	if g.late != nil && g.config.Rate > 0 {
		r.Generator.LateP99 = micros(time.Duration(g.late.ValueAtPercentile(99)))
	}
	return *r
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// timesOf sums a histogram up.
func timesOf(name string, h *hdrhistogram.Histogram, points []load.Point) report.Times {
	at := func(percent float64) float64 { return micros(time.Duration(h.ValueAtPercentile(percent))) }
	t := report.Times{
		Name: name, Count: h.TotalCount(), Min: micros(time.Duration(h.Min())), Mean: h.Mean() / float64(time.Microsecond),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: micros(time.Duration(h.Max())),
	}
	if t.Count == 0 {
		return report.Times{Name: name}
	}
	for _, percent := range percents(t.Count) {
		t.Curve = append(t.Curve, report.Quantile{Percent: percent, Value: at(percent)})
	}
	for _, p := range points {
		if p.Count > 0 {
			t.P50s = append(t.P50s, micros(p.P50))
			t.P99s = append(t.P99s, micros(p.P99))
		}
	}
	return t
}

// percents are where a distribution of so many values is shown: five to each halving
// of what is left to a hundred, to as far as there are values.
func percents(count int64) []float64 {
	list := []float64{0}
	for left := 1.0; left*float64(count) >= 1 && left > 1e-6; left /= math.Pow(2, 0.2) {
		if p := 100 * (1 - left); p > 0 {
			list = append(list, p)
		}
	}
	return append(list, 100)
}
