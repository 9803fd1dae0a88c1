package target

import "bytes"

// hostMark is in a list once for each instance.
const hostMark = `"ip":"`

// tally counts the instances of lists. Of long lists it counts each sixteenth, and of
// those between only the length is compared: counting costs the generator as much as
// the answer costs the server.
type tally struct {
	hosts, length int // of the last list that was counted
	since         int // lists after it
}

const (
	// longList is from where on a list is long, in bytes; some hundred instances.
	longList   = 64 << 10
	countEvery = 16
	// sameLength is the share by which lists of as many instances may differ, for
	// longer addresses and the like.
	sameLength = 0.01
)

func (t *tally) count(list []byte) int {
	if len(list) >= longList {
		t.since++
		differ := float64(max(len(list)-t.length, t.length-len(list)))
		if t.since < countEvery && differ <= sameLength*float64(t.length) {
			return t.hosts
		}
	}
	t.hosts, t.length, t.since = bytes.Count(list, []byte(hostMark)), len(list), 0
	return t.hosts
}
