package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/mattn/go-isatty"

	"github.com/rollcall-registry/rollcall/internal/bench"
	benchreport "github.com/rollcall-registry/rollcall/internal/bench/report"
)

// write writes the run in all forms that were asked for.
func (b *benchCommand) write(run *benchreport.Run) error {
	if len(run.Results) == 0 {
		return nil
	}
	if b.save != "" {
		if err := writeReport(b.save, run.Write); err != nil {
			return err
		}
	}
	if b.html != "" {
		if err := writeReport(b.html, run.HTML); err != nil {
			return err
		}
	}
	if b.json {
		return run.Write(b.app.process.Stdout)
	}
	if err := run.Table(b.app.process.Stdout); err != nil {
		return err
	}
	return b.compare(run)
}

// compare compares the servers of a run, if there are several and anything can be.
func (b *benchCommand) compare(run *benchreport.Run) error {
	sets := run.Sets("")
	list, err := benchreport.Compare(sets)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to compare, which the table has shown
	}
	fmt.Fprintln(b.app.process.Stdout)
	return benchreport.WriteComparison(b.app.process.Stdout, sets, list)
}

// writeReport has write fill a file.
func writeReport(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// progressLine is one line on a terminal that is written over and over. On anything
// else it shows nothing.
type progressLine struct {
	mu  sync.Mutex
	out io.Writer // nil when there is no terminal
}

func newProgressLine(w io.Writer) *progressLine {
	if l, ok := w.(*lockedWriter); ok {
		w = l.w
	}
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return &progressLine{out: w}
	}
	return &progressLine{}
}

// eraseLine takes the cursor to the beginning of an empty line.
const eraseLine = "\r\x1b[2K"

func (l *progressLine) show(p bench.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s[%d/%d] %s %s via %s: %s", eraseLine, p.Step, p.Steps, p.Server, p.Workload, p.Protocol, p.Stage)
	if p.Total > 0 {
		fmt.Fprintf(&b, " %.0f/%.0f s", p.Elapsed.Seconds(), p.Total.Seconds())
	}
	if p.PerSecond > 0 {
		fmt.Fprintf(&b, ", %.0f/s", p.PerSecond)
	}
	if p.Failed > 0 {
		fmt.Fprintf(&b, ", %d errors", p.Failed)
	}
	_, _ = io.WriteString(l.out, b.String())
}

func (l *progressLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		_, _ = io.WriteString(l.out, eraseLine)
	}
}
