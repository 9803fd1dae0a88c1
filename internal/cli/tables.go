package cli

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// row writes one row of a table for [layout.print].
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// printable replaces what a terminal would obey: clients choose some of the texts,
// such as their own names.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func nameOf(s opsv1.Service) string { return serviceName{s.Group, s.Service}.String() }

func hostPort(ip string, port int32) string {
	return net.JoinHostPort(strings.Trim(ip, "[]"), strconv.Itoa(int(port)))
}

// stampForm is the form of times that --since and --until read.
const stampForm = "2006-01-02T15:04:05.000Z"

// stamp shows a time in milliseconds since the epoch.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(stampForm) }

// clockForm is the form of times of a day.
const clockForm = "15:04:05.000"

// clock shows the time of day of a time in milliseconds since the epoch.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format(clockForm) }

// age shows a time span in milliseconds, nil for none.
func age(ms *int64) string {
	if ms == nil {
		return "-"
	}
	d := time.Duration(*ms) * time.Millisecond
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// took shows a time span in milliseconds with fractions.
func took(ms float64) string { return time.Duration(ms * float64(time.Millisecond)).String() }

func weight(w float64) string { return strconv.FormatFloat(w, 'g', -1, 64) }

func health(healthy bool) string {
	if healthy {
		return "healthy"
	}
	return "unhealthy"
}

func kind(ephemeral bool) string {
	if ephemeral {
		return "ephemeral"
	}
	return "persistent"
}

// owners names those who keep an instance alive.
func owners(list []opsv1.Owner) string {
	var names []string
	for _, o := range list {
		name := o.Kind
		if o.Client != "" {
			name += " " + o.Client
		}
		if o.Agent != "" {
			name += " (" + agent(o.Agent) + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// agentColumns bounds what a table shows of what a client calls itself, which may be
// as long as the User-Agent of a browser. What SDKs say fits.
const agentColumns = 32

// agent shortens what a client calls itself.
func agent(text string) string { return cut(text, agentColumns) }

// remarks says of an instance what is not as usual.
func remarks(i *opsv1.InstanceState) string {
	var words []string
	if !i.Enabled {
		words = append(words, "disabled")
	}
	if i.Override != nil {
		words = append(words, "overridden")
	}
	return strings.Join(words, ", ")
}
