package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
	rollcall "github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// tiny are all workloads at sizes that take a moment.
func tiny() []workload.Config {
	const short = 300 * time.Millisecond
	list := []workload.Config{
		{Workload: "register", Instances: 3, Connections: 4, Count: 100, Duration: time.Second},
		{Workload: "deregister", Instances: 3, Connections: 4, Count: 100, Duration: time.Second},
		{Workload: "turnover", Instances: 3, Connections: 4, Count: 100, Duration: time.Second},
		{Workload: "beat", Services: 4, Instances: 3, Connections: 4, Duration: short},
		{Workload: "query", Services: 4, Instances: 3, Connections: 4, Duration: short},
		{Workload: "query", Services: 2, Instances: 300, Connections: 2, Duration: short, Rate: 50},
		{Workload: "mixed", Services: 4, Instances: 3, Connections: 4, Duration: short},
		{Workload: "subscribe", Services: 4, Instances: 3, Connections: 4, Duration: short},
		{Workload: "fanout", Instances: 3, Subscribers: 20, Rate: 20, Duration: short},
		{Workload: "churn", Services: 4, Instances: 2, Subscribers: 20, Connections: 2, Rate: 50, Duration: short},
		{Workload: "fill", Services: 20, Instances: 3, Connections: 5, Rate: 50, Duration: short, Distinct: true},
		{Workload: "idle", Services: 4, Subscribers: 10, Connections: 2, Duration: short},
		{Workload: "storm", Services: 4, Instances: 3, Count: 1},
		{Workload: "rollout", Services: 2, Instances: 3, Subscribers: 6, Drain: 200 * time.Millisecond},
	}
	var both []workload.Config
	for _, c := range list {
		for _, p := range []target.Protocol{target.HTTP, target.GRPC} {
			c.Protocol = p
			both = append(both, c)
		}
	}
	return both
}

// complete fills in what is left to fill in, without a warm-up.
func complete(t *testing.T, c *workload.Config) {
	t.Helper()
	if err := c.Complete(new(time.Duration)); err != nil {
		t.Fatal(err)
	}
}

// measure runs one workload on one server.
func measure(t *testing.T, server *target.Target, patience time.Duration, c workload.Config) report.Result {
	t.Helper()
	complete(t, &c)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := &Runner{Targets: []*target.Target{server}, Work: []workload.Config{c}, Seed: 1, Interval: 100 * time.Millisecond, Patience: patience}
	results, err := r.Run(ctx)
	if err != nil || len(results) != 1 {
		t.Fatalf("got %d results, %v", len(results), err)
	}
	return results[0]
}

func targetOf(t *testing.T, s *servertest.Server) *target.Target {
	t.Helper()
	server, err := target.New("ours", s.Addr(), s.Addr()) // one port serves both
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// Every workload finds a real server to do what it answers, takes back what it
// registered, and has a figure.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	for _, c := range tiny() {
		t.Run(fmt.Sprintf("%s of %d via %s", c.Workload, c.Instances, c.Protocol), func(t *testing.T) {
			t.Parallel()
			server := targetOf(t, servertest.New(t))
			r := measure(t, server, 10*time.Second, c)
			if r.Fault != "" || r.Failed != 0 || r.Done == 0 || r.Seconds <= 0 {
				t.Fatalf("got %+v", r)
			}
			if r.Times[0].Count != r.Done || r.Times[0].P50 <= 0 || r.Times[0].Max < r.Times[0].P99 {
				t.Errorf("the times are %+v", r.Times[0])
			}
			for _, times := range r.Times[1:] {
				if times.Count == 0 {
					t.Errorf("nothing was timed as %q", times.Name)
				}
			}
			for _, f := range r.Figures {
				if f.Name == "lost final states" && f.Value != 0 {
					t.Errorf("%s: %v", f.Name, f.Value)
				}
			}
			if r.Checked.Services == 0 && r.Checked.Subscribers == 0 {
				t.Errorf("nothing was verified")
			}
		})
	}
}

// A run that is stopped has the figures of what was verified until then, and says what
// is missing.
func TestStopped(t *testing.T) {
	t.Parallel()
	server := targetOf(t, servertest.New(t))
	work := []workload.Config{
		{Workload: "query", Services: 2, Instances: 2, Connections: 2, Duration: 100 * time.Millisecond},
		{Workload: "beat", Services: 2, Instances: 2, Connections: 2, Duration: 100 * time.Millisecond},
	}
	for i := range work {
		complete(t, &work[i])
	}
	for stopAt, want := range map[int][]string{ // of 4 steps
		2: {"1 of 2 rounds"}, 3: {""}, 4: {"", "1 of 2 rounds"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		r := &Runner{Targets: []*target.Target{server}, Work: work, Rounds: 2, Seed: 1, Progress: func(p Progress) {
			if p.Step == stopAt && p.Stage == "run" {
				stop()
			}
		}}
		results, err := r.Run(ctx)
		stop()
		if !errors.Is(err, context.Canceled) || len(results) != len(want) {
			t.Fatalf("stopped in step %d: got %d results, %v", stopAt, len(results), err)
		}
		for i := range results {
			if results[i].Incomplete != want[i] || results[i].Fault != "" || results[i].Done == 0 {
				t.Errorf("stopped in step %d: got %+v", stopAt, results[i])
			}
		}
		if missing := (&report.Run{Results: results}).Missing(work); len(missing) != len(work)-len(want) {
			t.Errorf("stopped in step %d: missing are %v", stopAt, missing)
		}
	}
}

// A rate that nobody could send is no fault of the server.
func TestRateBeyondReach(t *testing.T) {
	t.Parallel()
	c := workload.Config{Workload: "query", Protocol: target.HTTP, Services: 1, Instances: 1, Connections: 1, Rate: 1_000_000, Duration: 100 * time.Millisecond}
	g := newGathered(&target.Target{Name: "ours"}, &c)
	if err := g.nothing(t.Context(), &load.Outcome{Missed: 7}); err != nil || !g.result.Behind || !strings.Contains(g.result.Fault, "lower rate") {
		t.Errorf("got %+v, %v", g.result, err)
	}
	g = newGathered(&target.Target{Name: "ours"}, &c)
	if err := g.nothing(t.Context(), &load.Outcome{Missed: 7, Fault: io.ErrUnexpectedEOF}); err != nil || g.result.Behind || !strings.Contains(g.result.Fault, "unexpected EOF") {
		t.Errorf("got %+v, %v", g.result, err)
	}
}

// A restart of a server that remembers everything takes nobody's instance away. The
// command stops the server and starts another on the same ports and data.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, p := range []target.Protocol{target.HTTP, target.GRPC} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			first := servertest.New(t)
			dir := t.TempDir()
			asked, done := filepath.Join(dir, "asked"), filepath.Join(dir, "done")
			server := targetOf(t, first)
			restarted := make(chan struct{})
			go func() {
				defer close(restarted)
				waitForFile(t, asked)
				first.Stop(t)
				servertest.New(t, servertest.WithDataDir(first.DataDir()), func(c *rollcall.Config) { c.Listen = []string{server.HTTP} })
				if err := os.WriteFile(done, nil, 0o600); err != nil {
					t.Error(err)
				}
			}()
			r := measure(t, server, 4*time.Second, workload.Config{
				Workload: "restart", Protocol: p, Services: 3, Instances: 3,
				Command: fmt.Sprintf("touch %s; while ! test -e %s; do sleep 0.05; done", asked, done),
			})
			<-restarted
			if r.Fault != "" || r.Done != 1 {
				t.Fatalf("got %+v", r)
			}
			for _, f := range r.Figures {
				if strings.Contains(f.Name, "empty") && f.Value != 0 || f.Name == "false removals told to subscribers" && f.Value != 0 {
					t.Errorf("%s: %v", f.Name, f.Value)
				}
			}
		})
	}
}

// A command that does not restart the server has no figures, nor one that fails.
func TestRestartThatIsNone(t *testing.T) {
	t.Parallel()
	server := targetOf(t, servertest.New(t))
	for command, want := range map[string]string{"true": "was not restarted", "echo no; exit 3": "exit status 3"} {
		r := measure(t, server, time.Second, workload.Config{Workload: "restart", Protocol: target.HTTP, Services: 2, Instances: 2, Command: command})
		if !strings.Contains(r.Fault, want) {
			t.Errorf("%s: got %+v", command, r)
		}
	}
}

func waitForFile(t *testing.T, name string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err := os.Stat(name); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Errorf("%s did not come", name)
}
