package report

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// unmatched says of each result that has no partner in another set why that is so.
func unmatched(sets []Set) []string {
	var lines []string
	for i := range sets {
		for k := range sets {
			if i != k && (i == 0 || k == 0) { // all are compared with the first
				lines = append(lines, sets[i].without(&sets[k])...)
			}
		}
	}
	return lines
}

// without are the results of a set that another has not. What failed is said once, by
// the set in which it did not.
func (s *Set) without(other *Set) []string {
	var lines []string
	for i := range s.Results {
		r := &s.Results[i]
		if r.Fault != "" || other.like(r) != nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s via %s of %s: %s", r.Title(), r.Config.Protocol, s.Name, other.lacks(r)))
	}
	return lines
}

// lacks says why a set has no partner for a result.
func (s *Set) lacks(r *Result) string {
	var nearest []string
	for i := range s.Results {
		have := &s.Results[i]
		if have.Config.Workload != r.Config.Workload || have.Config.Protocol != r.Config.Protocol {
			continue
		}
		differ := differences(&r.Config, &have.Config)
		if len(differ) == 0 {
			return s.Name + " failed in it"
		}
		if nearest == nil || len(differ) < len(nearest) {
			nearest = differ
		}
	}
	if nearest == nil {
		return s.Name + " has none"
	}
	return fmt.Sprintf("%s has it with other settings: %s", s.Name, strings.Join(nearest, ", "))
}

// differences are the settings by which two results are not of the same work, each with
// the value here and there.
func differences(here, there *workload.Config) []string {
	a, b := essence(*here), essence(*there)
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	var list []string
	for n := range x.NumField() {
		if p, q := x.Field(n).Interface(), y.Field(n).Interface(); !reflect.DeepEqual(p, q) {
			list = append(list, fmt.Sprintf("%s %v, not %v", x.Type().Field(n).Tag.Get("yaml"), q, p))
		}
	}
	return list
}

// essence is a configuration without what may differ between runs that are compared:
// how long it was measured, and how a server is restarted.
func essence(c workload.Config) workload.Config {
	c.Warmup, c.Duration, c.Command = 0, 0, ""
	return c
}
