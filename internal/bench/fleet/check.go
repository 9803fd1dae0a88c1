package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Host is an instance as a server lists it.
type Host struct {
	IP       string
	Port     int
	Weight   float64
	Healthy  bool
	Enabled  bool
	Metadata map[string]string
}

// Check compares what a server lists of a service with what it was sent: the
// instances that want says are there, each exactly once, healthy, with their
// weight and metadata, and no others.
func (s Service) Check(hosts []Host, want func(host int) (Instance, bool)) error {
	listed := make(map[string]*Host, len(hosts))
	for n := range hosts {
		listed[hosts[n].IP+":"+strconv.Itoa(hosts[n].Port)] = &hosts[n]
	}
	if len(listed) != len(hosts) {
		return fmt.Errorf("%s: an instance is listed twice", s.Name())
	}
	expected := 0
	for n := range s.Fleet.Size {
		i, there := want(n)
		if !there {
			continue
		}
		expected++
		if err := i.check(listed[i.IP()+":"+strconv.Itoa(i.Port())]); err != nil {
			return fmt.Errorf("%s: %s:%d %w", s.Name(), i.IP(), i.Port(), err)
		}
	}
	if len(hosts) != expected {
		return fmt.Errorf("%s: %d instances are listed, not %d", s.Name(), len(hosts), expected)
	}
	return nil
}

func (i Instance) check(h *Host) error {
	switch {
	case h == nil:
		return errAbsent
	case !h.Healthy:
		return errUnhealthy
	case h.Weight != 1 || h.Enabled == i.Disabled:
		return fmt.Errorf("has weight %v and is enabled: %t", h.Weight, h.Enabled)
	}
	for key, value := range i.Metadata() {
		if h.Metadata[key] != value {
			return fmt.Errorf("has metadata %v, not %v", h.Metadata, i.Metadata())
		}
	}
	return nil
}

var (
	errAbsent    = errors.New("is not listed")
	errUnhealthy = errors.New("is unhealthy")
)

// Revision returns the greatest revision in an encoded list, 0 for none.
func Revision(list []byte) int64 {
	var greatest int64
	mark := []byte(RevisionMark)
	for {
		at := bytes.Index(list, mark)
		if at < 0 {
			return greatest
		}
		list = list[at+len(mark):]
		var n int64
		for len(list) > 0 && list[0] >= '0' && list[0] <= '9' && n < 1<<53 {
			n = n*10 + int64(list[0]-'0')
			list = list[1:]
		}
		greatest = max(greatest, n)
	}
}
