package load

import (
	"sync/atomic"
	"time"
)

// counts are those of one worker, in a cache line of their own.
type counts struct {
	done, failed atomic.Int64
	missed       int64
	_            [40]byte
}

// maxIntervals bounds the samples of a run: ten hours of seconds.
const maxIntervals = 36_000

// sample takes samples from the end of the warm-up until stop is closed.
func (r *run) sample(stop <-chan struct{}) []Interval {
	every := r.Interval
	if every == 0 {
		every = time.Second
	}
	if !r.wait(stop, r.warm, r.begin()) {
		return nil
	}
	if r.OnBegin != nil {
		r.OnBegin()
	}
	var (
		list         []Interval
		begin        = r.begin()
		at           = begin
		done, failed int64
	)
	for on := true; on && len(list) < maxIntervals; {
		on = r.wait(stop, nil, at+int64(every))
		now := r.rec.Now()
		if !on && now-at < int64(every)/2 && len(list) > 0 {
			break // too short to compare with the others
		}
		i := Interval{At: time.Duration(at - begin), Length: time.Duration(now - at)}
		for w := range r.counts {
			i.Done += r.counts[w].done.Load()
			i.Failed += r.counts[w].failed.Load()
		}
		i.Done, done = i.Done-done, i.Done
		i.Failed, failed = i.Failed-failed, i.Failed
		at = now
		r.rec.rotate(i.At, i.Length)
		if r.OnInterval != nil {
			r.OnInterval(&i)
		}
		list = append(list, i)
	}
	return list
}

// wait waits until a time of the recorder's clock, or until early is closed, and
// returns true; or false as soon as stop is closed.
func (r *run) wait(stop, early <-chan struct{}, until int64) bool {
	timer := time.NewTimer(time.Duration(until - r.rec.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-early:
		return true
	case <-stop:
		return false
	}
}
