package registry

import "time"

// The wheel has one slot per tick. A record that is due past the horizon waits
// in the last slot and is looked at again there.
const (
	wheelTick  = 250 * time.Millisecond
	wheelSlots = 256 // a horizon of 64 s, past the default times
)

// wheel finds the records whose lease may have run out. Beats do not move a
// record: when its slot comes up, whoever judges it arms it for where its latest
// beat puts it. Guarded by the shard's lock.
type wheel struct {
	slots   [wheelSlots]*record // lists linked through [record.timer]
	turning *record             // the list of the slot that is being judged
	at      int64               // the tick that time has reached; no record waits before it
}

// timer is a record's place in the wheel. The zero value is in none.
type timer struct {
	next *record
	prev **record // what points to the record; nil when it is in no slot
	tick int64
}

// arm makes sure that r is judged once it is due. A record that is to be judged
// earlier stays where it is.
func (w *wheel) arm(r *record, due time.Duration) {
	tick := min(max(int64(due/wheelTick), w.at), w.at+wheelSlots-1)
	if r.timer.prev != nil && r.timer.tick <= tick {
		return
	}
	w.disarm(r)
	slot := &w.slots[tick%wheelSlots]
	r.timer = timer{next: *slot, prev: slot, tick: tick}
	if r.timer.next != nil {
		r.timer.next.timer.prev = &r.timer.next
	}
	*slot = r
}

// disarm takes r out of its slot, if it is in one.
func (w *wheel) disarm(r *record) {
	t := &r.timer
	if t.prev == nil {
		return
	}
	*t.prev = t.next
	if t.next != nil {
		t.next.timer.prev = t.prev
	}
	*t = timer{}
}

// advance lets time pass and gives judge the records that may be due at now; who
// is not due yet, judge puts back with arm, and may then see again. The slot of
// the present tick comes up again at the next call, so that nothing due is ever
// missed for being a part of a tick away.
func (w *wheel) advance(now time.Duration, judge func(*record)) {
	reached := int64(now / wheelTick)
	from := max(w.at, reached-wheelSlots+1)
	w.at = max(w.at, reached)
	for tick := from; tick <= reached; tick++ {
		slot := &w.slots[tick%wheelSlots]
		w.turning, *slot = *slot, nil
		if w.turning != nil {
			w.turning.timer.prev = &w.turning
		}
		for w.turning != nil {
			r := w.turning
			w.disarm(r)
			judge(r)
		}
	}
}
