package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
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
	case math.Abs(h.Weight-i.Weight()) > 0.5/revisions:
		return fmt.Errorf("has weight %v, not %v", h.Weight, i.Weight())
	case h.Enabled == i.Disabled:
		return fmt.Errorf("is enabled: %t", h.Enabled)
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

// Revision returns the greatest revision in an encoded list, in whatever nesting, 0 for
// none.
func Revision(list []byte) int64 {
	var greatest int64
	mark := []byte("weight")
	for {
		at := bytes.Index(list, mark)
		if at < 0 {
			return greatest
		}
		list = bytes.TrimLeft(list[at+len(mark):], "\\\": ")
		end := 0
		for end < len(list) && (list[end] >= '0' && list[end] <= '9' || list[end] == '.') {
			end++
		}
		if weight, err := strconv.ParseFloat(string(list[:end]), 64); err == nil && weight > 1 && weight <= 1+MaxRevision/revisions {
			greatest = max(greatest, int64(math.Round((weight-1)*revisions)))
		}
		list = list[end:]
	}
}
