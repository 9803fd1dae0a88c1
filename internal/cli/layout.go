package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

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
	width   int  // of a line, in columns of the terminal; 0 for no limit
	parts   bool // whether more of the table may come
	columns []tableColumn
}

// tableColumn is one column of a table.
type tableColumn struct {
	least   int  // how narrow it may become; 0 for no narrower than it is
	name    bool // whether its cells are cut in the middle
	natural int  // the width of its widest cell so far
	filled  bool // whether a cell below the heading is not empty
	fitted  int  // the width that it gets
}

const (
	// columnGap parts columns.
	columnGap = 2
	// leastText and leastName are how far texts and names are cut at most.
	leastText = 8
	leastName = 24
	// wrappedText is how far both are cut where rows do not fit even then.
	wrappedText = 32
	// cutMark stands for what was cut.
	cutMark = "…"
)

// headed returns the column below a heading. Addresses, numbers and words are never cut.
func headed(heading string) tableColumn {
	switch heading {
	case "METADATA", "OWNER", "AGENT", "SDK", "APP", "WHY", "REMARKS", "VALUE", "NAME", "CLUSTERS":
		return tableColumn{least: leastText}
	case "SERVICE", "NAMESPACE":
		return tableColumn{least: leastName, name: true}
	default:
		return tableColumn{}
	}
}

// expected is how wide a column will usually become, for a table that comes in parts.
func expected(heading string) int {
	switch heading {
	case "TIME":
		return len(stampForm)
	case "UTC":
		return len(clockForm)
	case "INSTANCE", "ABOUT":
		return len("255.255.255.255:65535")
	case "REMARKS":
		return len("was unhealthy")
	case "EVENT":
		return len("service created")
	case "HEALTH":
		return len(health(false))
	case "KIND":
		return len(kind(false))
	default:
		return 0
	}
}

// print lays out what write writes.
func (l *layout) print(out io.Writer, write func(w io.Writer)) error {
	var text, result bytes.Buffer
	write(&text)
	var rows [][]string
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") || len(rows) > 0 && line != "" {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		if len(rows) > 0 {
			l.block(&result, rows)
			rows, l.columns = nil, nil // what follows is another table
		}
		fmt.Fprintln(&result, line)
	}
	l.block(&result, rows)
	_, err := out.Write(result.Bytes())
	return err
}

// block writes rows with aligned columns. A line of one cell among them is a sentence,
// which widens no column.
func (l *layout) block(out *bytes.Buffer, rows [][]string) {
	for n, row := range rows {
		if len(row) > 1 {
			l.measure(row, n > 0 || l.columns != nil)
		}
	}
	l.fit()
	for _, row := range rows {
		if len(row) == 1 {
			fmt.Fprintln(out, row[0])
			continue
		}
		var line strings.Builder
		for n, cell := range row {
			c := &l.columns[n]
			if c.fitted < 0 {
				continue
			}
			if c.name {
				cell = cutMiddle(cell, c.fitted)
			} else {
				cell = cut(cell, c.fitted)
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", c.fitted-columnsOf(cell)+columnGap))
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

// measure widens the columns for a row. The first row is the heading.
func (l *layout) measure(row []string, content bool) {
	for n, cell := range row {
		if n == len(l.columns) {
			l.columns = append(l.columns, headed(cell))
			if l.parts {
				l.columns[n].natural = expected(cell)
			}
		}
		c := &l.columns[n]
		c.natural = max(c.natural, columnsOf(cell))
		c.filled = c.filled || content && cell != ""
	}
}

// fit decides how wide columns are: as wide as their widest cell if a row fits into the
// width so. Otherwise empty ones are left out, and the widest of those that may be cut are
// made narrower, texts before names, as far as need be and goes.
func (l *layout) fit() {
	total := -columnGap
	for n := range l.columns {
		c := &l.columns[n]
		c.fitted = c.natural
		total += c.natural + columnGap
	}
	if l.width == 0 {
		return
	}
	for n := range l.columns {
		if c := &l.columns[n]; total > l.width && !c.filled && !l.parts {
			total -= c.natural + columnGap
			c.fitted = -1
		}
	}
	for _, names := range []bool{false, true} {
		for total > l.width {
			widest := l.widest(names)
			if widest == nil {
				break
			}
			widest.fitted--
			total--
		}
	}
	if total > l.width { // the terminal wraps rows anyway
		for n := range l.columns {
			if c := &l.columns[n]; c.least > 0 && c.fitted > 0 {
				c.fitted = min(c.natural, wrappedText)
			}
		}
	}
}

// widest returns the widest of the columns that may become narrower; nil for none.
func (l *layout) widest(names bool) (widest *tableColumn) {
	for n := range l.columns {
		c := &l.columns[n]
		if c.least > 0 && c.name == names && c.fitted > c.least && (widest == nil || c.fitted > widest.fitted) {
			widest = c
		}
	}
	return widest
}

// cutMiddle shortens a text that has more than so many columns, and leaves both of its
// ends.
func cutMiddle(text string, columns int) string {
	if columnsOf(text) <= columns {
		return text
	}
	end := len(text)
	for kept := 0; ; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		if kept += runeColumns(r); kept > columns/2 {
			break
		}
		end -= size
	}
	return cut(text[:end]+cutMark, columns-columnsOf(text[end:])) + text[end:]
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
