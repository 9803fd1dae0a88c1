package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// laidOut returns what a layout prints of rows.
func laidOut(t *testing.T, l *layout, rows ...[]string) string {
	t.Helper()
	var b bytes.Buffer
	err := l.print(&b, func(w io.Writer) {
		for _, cells := range rows {
			row(w, cells...)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLayout(t *testing.T) {
	t.Parallel()
	heading := []string{"SERVICE", "HEALTHY", "REMARKS", "METADATA"}
	long := []string{"billing.invoices.of.the.north@@orders", "3", "", "zone=a description=long"}
	wide := []string{"目录服务", "1", "", "zone=北"}
	for _, tt := range []struct {
		name  string
		width int
		rows  [][]string
		want  string
	}{
		{"as wide as need be", 0, [][]string{heading, long, wide}, `
SERVICE                                HEALTHY  REMARKS  METADATA
billing.invoices.of.the.north@@orders  3                 zone=a description=long
目录服务                               1                 zone=北
`},
		{"without what is empty", 73, [][]string{heading, long}, `
SERVICE                                HEALTHY  METADATA
billing.invoices.of.the.north@@orders  3        zone=a description=long
`},
		{"texts are cut", 64, [][]string{heading, long, wide}, `
SERVICE                                HEALTHY  METADATA
billing.invoices.of.the.north@@orders  3        zone=a descript…
目录服务                               1        zone=北
`},
		{"then names, in the middle", 50, [][]string{heading, long}, `
SERVICE                          HEALTHY  METADATA
billing.invoice…e.north@@orders  3        zone=a …
`},
		{"where nothing helps, less", 10, [][]string{heading, long}, `
SERVICE                           HEALTHY  METADATA
billing.invoice…he.north@@orders  3        zone=a description=long
`},
		{"a sentence below", 0, [][]string{{"SERVICE", "HEALTHY"}, {"a", "1"}, {"and 100,000 more of them"}}, `
SERVICE  HEALTHY
a        1
and 100,000 more of them
`},
		{"two tables", 0, [][]string{{"SERVICE", "HEALTHY"}, {"a", "1"}, {""}, {"A", "B"}, {"b", "c"}}, `
SERVICE  HEALTHY
a        1

A  B
b  c
`},
	} {
		got := "\n" + laidOut(t, &layout{width: tt.width}, tt.rows...)
		if got != tt.want {
			t.Errorf("%s: got%swant%s", tt.name, got, tt.want)
		}
		for line := range strings.Lines(got) {
			if tt.width > 40 && columnsOf(strings.TrimSuffix(line, "\n")) > tt.width {
				t.Errorf("%s: %q is too wide", tt.name, line)
			}
		}
	}
}

// The parts of a table fit, and no column goes which a later part may need.
func TestLayoutInParts(t *testing.T) {
	t.Parallel()
	l := &layout{width: 50, parts: true}
	got := laidOut(t, l, []string{"TIME", "WHY", "KIND"}, []string{"nothing is there"}) +
		laidOut(t, l, []string{stamp(0), "", kind(true)}) +
		laidOut(t, l, []string{stamp(1), "was unhealthy and slow", kind(false)})
	const want = `TIME                      WHY  KIND
nothing is there
1970-01-01T00:00:00.000Z       ephemeral
1970-01-01T00:00:00.001Z  was unhealt…  persistent
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text         string
		columns      int
		end, between string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "abcd…", "ab…ef"},
		{"abcdef", 4, "abc…", "a…ef"},
		{"目录服务", 7, "目录服…", "目录…务"},
		{"目录服务", 6, "目录…", "目…务"},
		{"", 0, "", ""},
	} {
		if got := cut(tt.text, tt.columns); got != tt.end {
			t.Errorf("cut %q to %d: got %q, want %q", tt.text, tt.columns, got, tt.end)
		}
		if got := cutMiddle(tt.text, tt.columns); got != tt.between {
			t.Errorf("cut the middle of %q to %d: got %q, want %q", tt.text, tt.columns, got, tt.between)
		}
	}
}
