package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table is a result. The first column is text, the others are figures.
type table struct {
	marker  string // names the place in a Markdown file
	machine string
	head    []string
	rows    [][]string
	// listing is preformatted text that follows the rows, "" for none.
	listing string
}

// text writes the table for a terminal.
func (t *table) text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s (%s)\n", t.marker, t.machine)
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range t.lines() {
		fmt.Fprintln(columns, strings.ReplaceAll(strings.Join(row, "\t"), "`", "")+"\t")
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, t.listing)
	return err
}

// lines returns the head and the rows, nothing if there are none.
func (t *table) lines() [][]string {
	if len(t.rows) == 0 {
		return nil
	}
	return append([][]string{t.head}, t.rows...)
}

// markdown is the table with a line that says where and when it was measured.
func (t *table) markdown() []byte {
	var b bytes.Buffer
	for n, cells := range t.lines() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if n == 0 {
			b.WriteString("| --- |" + strings.Repeat(" --: |", len(cells)-1) + "\n")
		}
	}
	if t.listing != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(t.listing, "\n"))
	}
	fmt.Fprintf(&b, "\nMeasured: %s.\n", t.machine)
	return b.Bytes()
}

// writeTo replaces what is between the markers of the table in a file. Without a
// file it does nothing.
func (t *table) writeTo(file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next, err := replaceBetween(text, t.marker, t.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, next, 0o644)
}

// replaceBetween puts content between the lines <!-- e2e NAME --> and
// <!-- e2e NAME end -->.
func replaceBetween(text []byte, name string, content []byte) ([]byte, error) {
	begin, end := []byte("<!-- e2e "+name+" -->\n"), []byte("<!-- e2e "+name+" end -->\n")
	head, rest, found := bytes.Cut(text, begin)
	_, tail, closed := bytes.Cut(rest, end)
	if !found || !closed {
		return nil, fmt.Errorf("it has no markers %q and %q", begin, end)
	}
	return bytes.Join([][]byte{head, begin, content, end, tail}, nil), nil
}

// machine says what was measured, where and when.
func machine(binary string) string {
	parts := []string{time.Now().UTC().Format("2006-01-02")}
	if revision, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output(); err == nil {
		parts = append(parts, "commit "+strings.TrimSpace(string(revision)))
	}
	parts = append(parts, runtime.Version(), processor())
	if info, err := os.Stat(binary); err == nil {
		parts = append(parts, "binary of "+mebibytes(info.Size()))
	}
	return strings.Join(parts, ", ")
}

// processor returns the model and number of the machine's processors.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	model, n := "", 0
	for line := range strings.Lines(string(text)) {
		switch name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(value)
		case "processor":
			n++
		}
	}
	return fmt.Sprintf("%s, %d cores", model, n)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// thousands writes a figure with commas, without its fraction.
func thousands(f float64) string {
	digits := strconv.FormatInt(int64(f+0.5), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// median returns the middle of a list, which it sorts; 0 of an empty one.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	n := len(list) / 2
	if len(list)%2 == 0 {
		return (list[n-1] + list[n]) / 2
	}
	return list[n]
}
