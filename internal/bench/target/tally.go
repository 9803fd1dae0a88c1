package target

import "bytes"

// members counts the members of a name whose value begins as given. escape is how
// quotation marks are written. Servers of Nacos write JSON without space, which is
// counted in one pass; where nothing is found so, space around the colon is looked
// for.
func members(json []byte, name, value, escape string) int {
	key := escape + `"` + name + escape + `"`
	if n := bytes.Count(json, []byte(key+":"+value)); n > 0 {
		return n
	}
	n := 0
	for {
		_, rest, found := bytes.Cut(json, []byte(key))
		if !found {
			return n
		}
		json = rest
		if v, is := memberValue(rest); is && bytes.HasPrefix(v, []byte(value)) {
			n++
		}
	}
}

// member returns what follows the first member of a name, from its value on; found is
// false if there is none.
func member(json []byte, name string) (value []byte, found bool) {
	key := []byte(`"` + name + `"`)
	for {
		_, rest, there := bytes.Cut(json, key)
		if !there {
			return nil, false
		}
		if value, found = memberValue(rest); found {
			return value, true
		}
		json = rest
	}
}

// memberValue returns what is behind the colon that comes after a name.
func memberValue(b []byte) (value []byte, ok bool) {
	b = bytes.TrimLeft(b, space)
	if len(b) == 0 || b[0] != ':' {
		return nil, false
	}
	return bytes.TrimLeft(b[1:], space), true
}

// space is what may be between the tokens of JSON. Source: RFC 8259 2.
const space = " \t\r\n"

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
	t.hosts, t.length, t.since = members(list, "ip", `"`, ""), len(list), 0
	return t.hosts
}
