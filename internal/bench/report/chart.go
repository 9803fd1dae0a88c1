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
	Width, Height int
	// The area within the axes.
	Left, Top, Right, Bottom float64
	XTicks, YTicks           []Tick
	Lines                    []Line
}

// Tick is a place on an axis with its text.
type Tick struct {
	At   float64
	Text string
}

// Line is one line with its name.
type Line struct {
	Name   string
	Colour int    // from 0, of the style sheet
	Points string // of an SVG polyline
}

// The size of a chart and of the room for its axes.
const (
	chartWidth, chartHeight = 560, 260
	roomLeft, roomRight     = 70, 14
	roomTop, roomBottom     = 12, 28
	colours                 = 8 // that the style sheet has
)

func newChart(title string) *Chart {
	return &Chart{
		Title: title, Width: chartWidth, Height: chartHeight,
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
func (c *Chart) line(name string, x, y axis, xs, ys []float64) {
	if len(xs) < 2 {
		return
	}
	var b strings.Builder
	for n := range xs {
		fmt.Fprintf(&b, "%.1f,%.1f ", x.at(xs[n]), y.at(ys[n]))
	}
	c.Lines = append(c.Lines, Line{Name: name, Colour: len(c.Lines) % colours, Points: strings.TrimSpace(b.String())})
}

// curve is a series of a server for a chart of percentiles.
type curve struct {
	name   string
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
	c := newChart("Latency by percentile")
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
		return c
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
			xs, ys = append(xs, min(rarity(p.Percent), rarest)), append(ys, p.Value)
		}
		c.line(k.name, x, y, xs, ys)
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

// axisTime writes a power of ten of microseconds.
func axisTime(us float64) string {
	switch {
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
	at, here []float64 // seconds, and the figure
}

// timeline draws figures over time; text writes one for the axis.
func timeline(title string, tracks []track, text func(float64) string) *Chart {
	c := newChart(title)
	var last, high float64
	for _, t := range tracks {
		for n := range t.at {
			last, high = max(last, t.at[n]), max(high, t.here[n])
		}
	}
	if high == 0 || last == 0 {
		return c
	}
	step := niceStep(high)
	x := axis{low: 0, high: last, from: c.Left, to: c.Right}
	y := axis{low: 0, high: step * math.Ceil(high/step), from: c.Bottom, to: c.Top}
	for n := range 6 {
		at := last * float64(n) / 5
		c.XTicks = append(c.XTicks, Tick{x.at(at), fmt.Sprintf("%.3g s", at)})
	}
	for v := 0.0; v <= y.high*1.001; v += step {
		c.YTicks = append(c.YTicks, Tick{y.at(v), text(v)})
	}
	for _, t := range tracks {
		c.line(t.name, x, y, t.at, t.here)
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
