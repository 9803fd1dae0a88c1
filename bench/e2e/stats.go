package main

import (
	"fmt"
	"slices"
	"time"
)

// median returns the middle of a list, which it sorts; 0 of an empty one.
func median(list []float64) float64 { return quantile(list, 0.5) }

// quantile returns the value below which the share q of a list lies.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	at := q * float64(len(list)-1)
	low := int(at)
	high := min(low+1, len(list)-1)
	return list[low] + (list[high]-list[low])*(at-float64(low))
}

// round is what one round of a contender measured.
type round struct {
	perSecond float64
	cpu       float64 // microseconds of the server's processor time per request
}

// measureRound drives a server and measures that. The requests begin with number
// first; sent is how many there were.
func (b *bench) measureRound(p *process, f *fleet, c *call, first int, more func(int) bool) (r round, sent int, err error) {
	before, err := p.cpu()
	if err != nil {
		return r, 0, err
	}
	start := time.Now()
	if sent, err = f.drive(c, first, more); err != nil {
		return r, sent, fmt.Errorf("%s: %w", p.name, err)
	}
	took := time.Since(start)
	after, err := p.cpu()
	if err != nil {
		return r, sent, err
	}
	return round{
		perSecond: float64(sent) / took.Seconds(),
		cpu:       float64(after-before) / 1e3 / float64(max(sent, 1)),
	}, sent, nil
}

// pick returns one figure of each round.
func pick(rounds []round, f func(round) float64) []float64 {
	list := make([]float64, len(rounds))
	for i, r := range rounds {
		list[i] = f(r)
	}
	return list
}

func perSecond(r round) float64 { return r.perSecond }
func cpuOf(r round) float64     { return r.cpu }

// ratio returns the median of a's figure over b's, round by round.
func ratio(a, b []round, f func(round) float64) float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = f(a[i]) / f(b[i])
	}
	return median(list)
}
