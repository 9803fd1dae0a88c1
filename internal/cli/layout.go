package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"golang.org/x/text/width"
)

// show prints v as JSON if that was asked for, and otherwise the rows that
// table writes; see [client.table].
func (c *client) show(v any, table func(w io.Writer)) error {
	if c.json {
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	return c.table(table)
}

// table prints the lines that write writes. Lines with tabs are the rows of a table, the
// first of them its heading; other lines end it.
func (c *client) table(write func(w io.Writer)) error {
	return (&layout{width: c.width}).print(c.out, write)
}

// layout is how the columns of a table are laid out. One that is used again keeps the
// columns as wide as they were, so that the parts of a table which comes in parts fit.
type layout struct {
	width    int   // of a line, in columns of the terminal; 0 for no limit
	natural  []int // of each column, in what has been printed
	flexible []bool
}

// flexibleColumns are those whose cells may be cut. What names a thing is never cut.
var flexibleColumns = []string{"METADATA", "OWNER", "AGENT", "SDK", "APP", "WHY", "REMARKS", "VALUE", "NAME", "CLUSTERS"}

const (
	// columnGap parts columns.
	columnGap = 2
	// leastColumn is how far a column is cut at most.
	leastColumn = 8
	// cutMark ends what was cut.
	cutMark = "…"
)

// print lays out what write writes.
func (l *layout) print(out io.Writer, write func(w io.Writer)) error {
	var text bytes.Buffer
	write(&text)
	var result bytes.Buffer
	var rows [][]string
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") || len(rows) > 0 && line != "" {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		l.block(&result, rows)
		if len(rows) > 0 {
			*l = layout{width: l.width} // what follows is another table
		}
		rows = nil
		fmt.Fprintln(&result, line)
	}
	l.block(&result, rows)
	_, err := out.Write(result.Bytes())
	return err
}

// block writes rows with aligned columns. The last cell of a row needs no column: a
// sentence below a table does not widen it.
func (l *layout) block(out *bytes.Buffer, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if l.flexible == nil {
		for _, name := range rows[0] {
			l.flexible = append(l.flexible, slices.Contains(flexibleColumns, name))
		}
	}
	for _, row := range rows {
		for n, cell := range row {
			if n == len(l.natural) {
				l.natural = append(l.natural, 0)
			}
			if len(row) > 1 {
				l.natural[n] = max(l.natural[n], columnsOf(cell))
			}
		}
	}
	widths := l.fitted()
	for _, row := range rows {
		var line strings.Builder
		for n, cell := range row {
			if len(row) > 1 {
				cell = cut(cell, widths[n])
			}
			line.WriteString(cell)
			if n < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[n]-columnsOf(cell)+columnGap))
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// fitted returns the widths of the columns, the widest of those that may be cut made
// narrower until a row fits into the width.
func (l *layout) fitted() []int {
	widths := slices.Clone(l.natural)
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	for l.width > 0 && total > l.width {
		widest := -1
		for n, w := range widths {
			if n < len(l.flexible) && l.flexible[n] && w > leastColumn && (widest < 0 || w > widths[widest]) {
				widest = n
			}
		}
		if widest < 0 {
			break // what is left cannot be cut; the terminal wraps it
		}
		widths[widest]--
		total--
	}
	return widths
}

// cut shortens a text that has more than so many columns.
func cut(text string, columns int) string {
	if columnsOf(text) <= columns {
		return text
	}
	used := columnsOf(cutMark)
	for n, r := range text {
		if used += runeColumns(r); used > columns {
			return text[:n] + cutMark
		}
	}
	return text
}

// columnsOf returns how many columns a text has on a terminal.
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 2 for the wide characters of East Asia.
func runeColumns(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// tableWidth returns how wide tables may be: as COLUMNS says, or as the terminal is.
// What goes into a pipe or a file is not shortened, nor with --wide.
func (a *app) tableWidth(flags *pflag.FlagSet) (int, error) {
	wide, err := flags.GetBool("wide")
	if err != nil || wide {
		return 0, err
	}
	if n, err := strconv.Atoi(a.lookupEnv("COLUMNS")); err == nil && n > 0 {
		return n, nil
	}
	out, ok := a.process.Stdout.(*os.File)
	if !ok {
		return 0, nil
	}
	n, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0, nil //nolint:nilerr // it is no terminal
	}
	return n, nil
}
