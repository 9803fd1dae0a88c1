package report

import (
	"fmt"
	"math"
	"strings"
)

// Chart is a drawing of lines, laid out for a template: all positions are in the
// units of its view box.
type Chart struct {
	Title         string
	Says          string // what it shows
	Across        string // what the horizontal axis is
	Width, Height int
	// The area within the axes.
	Left, Top, Right, Bottom float64
	XTicks, YTicks           []Tick
	Lines                    []Line
	// Seams are where one round ends and the next begins, which is at another time.
	Seams []float64
}

// Labels is where the texts of the vertical axis end, Below the base of those of the
// other.
func (c *Chart) Labels() float64 { return c.Left - 6 }
func (c *Chart) Below() float64  { return c.Bottom + 20 }

// Odd reports whether a tick has no room for its text on a narrow screen.
func (c *Chart) Odd(n int) bool { return len(c.XTicks) > 5 && n%2 == 1 }

// Tick is a place on an axis with its text.
type Tick struct {
	At   float64
	Text string
}

// Line is one line with its name.
type Line struct {
	Name   string
	Class  string // of the style sheet
	Points string // of an SVG polyline
}

// style tells lines apart: by colour and by dashes, both from 0.
type style struct{ colour, dash int }

// class names the style in the style sheet.
func (s style) class() string { return fmt.Sprintf("c%d d%d", s.colour%colours, s.dash%dashes) }

// The size of a chart and of the room for its axes.
const (
	chartWidth, chartHeight = 560, 260
	roomLeft, roomRight     = 70, 20
	roomTop, roomBottom     = 12, 48
	// What the style sheet has.
	colours = 8
	dashes  = 4
)

func newChart(title, says string) *Chart {
	return &Chart{
		Title: title, Says: says, Width: chartWidth, Height: chartHeight,
		Left: roomLeft, Top: roomTop, Right: chartWidth - roomRight, Bottom: chartHeight - roomBottom,
	}
}

// axis places values on a line.
type axis struct {
	low, high float64
	from, to  float64 // positions
	log       bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log10(max(v, a.low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return a.from
	}
	return a.from + (a.to-a.from)*(v-low)/(high-low)
}

// line adds a line through points; it needs two of them.
func (c *Chart) line(name string, s style, x, y axis, xs, ys []float64) {
	if len(xs) < 2 {
		return
	}
	var b strings.Builder
	for n := range xs {
		fmt.Fprintf(&b, "%.1f,%.1f ", x.at(xs[n]), y.at(ys[n]))
	}
	c.Lines = append(c.Lines, Line{Name: name, Class: s.class(), Points: strings.TrimSpace(b.String())})
}

// curve is a series of a server for a chart of percentiles.
type curve struct {
	name   string
	style  style
	points []Quantile
}

// nines are the marks of the axis of percentiles: each takes as much room as the one
// before, and is ten times closer to a hundred.
func nines() []float64 { return []float64{0, 90, 99, 99.9, 99.99, 99.999} }

// rarity is where a percentile is on such an axis: how many nines it has.
func rarity(percent float64) float64 {
	return -math.Log10(max(1-percent/100, 1e-6))
}

// percentiles draws how many took at most how long.
func percentiles(curves []curve) *Chart {
	c := newChart("Latency by percentile", "How many took at most how long: what is right of 99 % is the slowest hundredth. Both axes are logarithmic; lower is better.")
	c.Across = "share that took at most so long"
	low, high, rarest := math.Inf(1), 0.0, 1.0
	for _, k := range curves {
		for _, p := range k.points {
			if p.Value > 0 {
				low, high = min(low, p.Value), max(high, p.Value)
			}
			if p.Percent < 100 {
				rarest = max(rarest, rarity(p.Percent))
			}
		}
	}
	if high == 0 {
		return c // nothing was timed
	}
	y := decades(low, high, c.Bottom, c.Top)
	x := axis{low: 0, high: rarest, from: c.Left, to: c.Right}
	for _, p := range nines() {
		if r := rarity(p); r <= rarest {
			c.XTicks = append(c.XTicks, Tick{x.at(r), fmt.Sprintf("%v %%", p)})
		}
	}
	c.logTicks(y)
	for _, k := range curves {
		var xs, ys []float64
		for _, p := range k.points {
			if p.Percent < 100 { // the longest has no place on an axis of nines
				xs, ys = append(xs, rarity(p.Percent)), append(ys, p.Value)
			}
		}
		c.line(k.name, k.style, x, y, xs, ys)
	}
	return c
}

// decades is an axis from a power of ten to another.
func decades(low, high, from, to float64) axis {
	return axis{
		low: math.Pow(10, math.Floor(math.Log10(low))), high: math.Pow(10, math.Ceil(math.Log10(high*1.001))),
		from: from, to: to, log: true,
	}
}

func (c *Chart) logTicks(y axis) {
	for v := y.low; v <= y.high*1.001; v *= 10 {
		c.YTicks = append(c.YTicks, Tick{y.at(v), axisTime(v)})
	}
}

// axisTime writes a round number of microseconds.
func axisTime(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us < 1000:
		return fmt.Sprintf("%g µs", us)
	case us < 1e6:
		return fmt.Sprintf("%g ms", us/1e3)
	default:
		return fmt.Sprintf("%g s", us/1e6)
	}
}

// track is a figure of a server over time.
type track struct {
	name     string
	style    style
	at, here []float64 // seconds, and the figure
	seams    []float64 // seconds: where another round begins
}

// without leaves out the moments at which the figure has a value that says that there
// was none.
func (t track) without(nothing float64) track {
	kept := track{name: t.name, style: t.style, seams: t.seams}
	for n, v := range t.here {
		if v != nothing {
			kept.at, kept.here = append(kept.at, t.at[n]), append(kept.here, v)
		}
	}
	return kept
}

// timeline draws figures over time. The axis has steps that are round in units of
// unit; text writes one.
func timeline(title, says string, tracks []track, unit float64, text func(float64) string) *Chart {
	c := newChart(title, says)
	c.Across = "seconds since the warm-up ended"
	var last, high float64
	for _, t := range tracks {
		for n := range t.at {
			last, high = max(last, t.at[n]), max(high, t.here[n])
		}
	}
	if high == 0 || last == 0 {
		return c
	}
	step := niceStep(high/unit) * unit
	x := axis{low: 0, high: last, from: c.Left, to: c.Right}
	y := axis{low: 0, high: step * math.Ceil(high/step), from: c.Bottom, to: c.Top}
	every := niceStep(last)
	for n := 0; float64(n)*every <= last; n++ {
		at := float64(n) * every
		c.XTicks = append(c.XTicks, Tick{x.at(at), fmt.Sprintf("%.4g s", at)})
	}
	for n := 0; float64(n)*step <= y.high*1.001; n++ {
		c.YTicks = append(c.YTicks, Tick{y.at(float64(n) * step), text(float64(n) * step)})
	}
	for n, t := range tracks {
		c.line(t.name, t.style, x, y, t.at, t.here)
		for _, at := range t.seams {
			if n == 0 && at < last { // those of all servers are at nearly the same places
				c.Seams = append(c.Seams, x.at(at))
			}
		}
	}
	if len(c.Seams) > 0 {
		c.Across = "seconds of all rounds; dashes where the next begins"
	}
	return c
}

// niceStep is a step of 1, 2 or 5 times a power of ten, of which high has four to
// ten.
func niceStep(high float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, f := range []float64{5, 2} {
		if high/(step*f) >= 4 {
			return step * f
		}
	}
	return step
}
