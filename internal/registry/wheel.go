package registry

import "time"

// The wheel has one slot per tick. An entry further away than the horizon waits
// in the last slot and is looked at again there.
const (
	wheelTick  = 250 * time.Millisecond
	wheelSlots = 256 // a horizon of 64 s, past the default times
)

// wheel finds the records whose lease may have run out. A record is in it once;
// beats do not move it: when its slot comes up, it goes back to where its latest
// beat puts it. Guarded by the shard's lock.
type wheel struct {
	slots [wheelSlots][]*record
	// at is the tick that was last expired.
	at int64
}

// add puts r where it is due, unless it is in the wheel already.
func (w *wheel) add(r *record, due time.Duration) {
	if r.wheeled {
		return
	}
	r.wheeled = true
	tick := int64(due/wheelTick) + 1 // never early
	tick = min(max(tick, w.at+1), w.at+wheelSlots-1)
	slot := &w.slots[tick%wheelSlots]
	*slot = append(*slot, r)
}

// advance takes out the entries of the ticks up to now and gives each to f,
// which puts it back with add if it must.
func (w *wheel) advance(now time.Duration, f func(*record)) {
	for until := int64(now / wheelTick); w.at < until; {
		if until-w.at > wheelSlots {
			w.at = until - wheelSlots
		}
		w.at++
		slot := &w.slots[w.at%wheelSlots]
		due := *slot
		*slot = nil
		for _, r := range due {
			r.wheeled = false
			f(r)
		}
	}
}
