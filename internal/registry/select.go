package registry

import "strings"

// Policy is how an API judges the protect threshold. Nacos 1.x and 2.x differ,
// and clients of each count on theirs; see docs/divergence.md.
type Policy uint8

const (
	// PolicyV1 counts healthy and all instances of the asked clusters, disabled
	// ones too, before healthyOnly is applied. With the threshold 0 it is
	// reached when nothing is healthy.
	PolicyV1 Policy = iota
	// PolicyV2 counts after healthyOnly, among enabled instances, and only for a
	// service whose settings somebody has set.
	PolicyV2
)

// Query is what a reader asks of a view.
type Query struct {
	// Clusters are looked at in turn; none means all. A cluster that is not
	// there is skipped. One that is named twice is listed twice, as in 1.x, but no
	// more than that, so that a short question has no endless answer.
	Clusters    []string
	HealthyOnly bool
	// WithDisabled keeps disabled instances, as 0.9 does.
	WithDisabled bool
	Policy       Policy
	// ConsumerIP is the asker's address, for a label selector; empty means that
	// the selector is not applied.
	ConsumerIP string
	// Labels returns the labels of an address; nil when there are none. A label
	// of an instance is looked up in its metadata first.
	Labels func(ip string) map[string]string
}

// Selection is the answer to a query.
type Selection struct {
	// Instances are those chosen. It may share memory with the view.
	Instances []*Instance
	// Protected: the threshold is reached, and every instance is shown as
	// healthy. See [Selection.Healthy].
	Protected bool
	// Candidates is the number of instances in the asked clusters after the
	// selector: what 1.x tells an empty service from a filtered one by.
	Candidates int
}

// Healthy returns the health of a chosen instance as the asker is to see it.
func (s *Selection) Healthy(i *Instance) bool { return i.Healthy || s.Protected }

// Verdict is what became of one candidate of a look-up.
type Verdict string

// The verdicts of [Select], in the order in which the rules are applied.
const (
	Kept            Verdict = "kept"
	KeptByThreshold Verdict = "kept as healthy: the protect threshold is reached"
	OtherCluster    Verdict = "dropped: not in the asked clusters"
	LabelMismatch   Verdict = "dropped: the label selector does not match"
	NotHealthy      Verdict = "dropped: unhealthy, and only healthy ones were asked for"
	NotEnabled      Verdict = "dropped: disabled"
)

// Select answers a query from a view. It is the one function by which every
// reader, whatever its protocol, learns who is in a service.
func Select(v *View, q Query) Selection { return choose(v, q, nil) }

// Explain answers a query as [Select] does, and tells visit what became of each
// instance of the view.
func Explain(v *View, q Query, visit func(*Instance, Verdict)) Selection {
	verdicts := make(map[*Instance]Verdict, len(v.Instances))
	sel := choose(v, q, verdicts)
	for _, i := range v.Instances {
		verdict, judged := verdicts[i]
		if !judged {
			verdict = OtherCluster
		}
		visit(i, verdict)
	}
	return sel
}

// choose applies the rules in turn. verdicts may be nil.
func choose(v *View, q Query, verdicts map[*Instance]Verdict) Selection {
	note := func(i *Instance, verdict Verdict) {
		if verdicts != nil {
			verdicts[i] = verdict
		}
	}
	list := inClusters(v, q.Clusters)
	list = matching(v, list, q, note)
	sel := Selection{Candidates: len(list)}
	sel.Protected = protected(v, list, q)
	all := allServed(list, q)
	if all {
		sel.Instances = list
	} else {
		sel.Instances = make([]*Instance, 0, len(list))
	}
	for _, i := range list {
		switch {
		case q.HealthyOnly && !i.Healthy && (!sel.Protected || q.Policy == PolicyV2):
			note(i, NotHealthy)
			continue
		case !i.Enabled && !q.WithDisabled:
			note(i, NotEnabled)
			continue
		case !i.Healthy && sel.Protected:
			note(i, KeptByThreshold)
		default:
			note(i, Kept)
		}
		if !all {
			sel.Instances = append(sel.Instances, i)
		}
	}
	return sel
}

// allServed reports whether nothing of list can be dropped, so that it need not
// be copied.
func allServed(list []*Instance, q Query) bool {
	for _, i := range list {
		if (!i.Enabled && !q.WithDisabled) || (q.HealthyOnly && !i.Healthy) {
			return false
		}
	}
	return true
}

// inClusters returns the instances of the named clusters.
func inClusters(v *View, clusters []string) []*Instance {
	if len(clusters) == 0 {
		return v.Instances
	}
	list := make([]*Instance, 0, len(v.Instances))
	listed := make([]uint8, len(v.Clusters))
	for _, name := range clusters {
		c, ok := v.clusterIndex(name)
		if !ok || listed[c] == 2 {
			continue
		}
		listed[c]++
		for _, i := range v.Instances {
			if i.Cluster == name {
				list = append(list, i)
			}
		}
	}
	return list
}

// matching applies the service's label selector. When it matches nobody, all are
// returned, as in the original: a wrong label must not empty a service.
func matching(v *View, list []*Instance, q Query, note func(*Instance, Verdict)) []*Instance {
	labels := v.Info.Selector.Labels
	if v.Info.Selector.Type != SelectorLabel || len(labels) == 0 || q.ConsumerIP == "" || q.Labels == nil {
		return list
	}
	consumer := q.Labels(q.ConsumerIP)
	var out []*Instance
	for _, i := range list {
		if labelsMatch(labels, consumer, i, q.Labels) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return list
	}
	kept := 0
	for _, i := range list {
		if kept < len(out) && out[kept] == i {
			kept++
			continue
		}
		note(i, LabelMismatch)
	}
	return out
}

// labelsMatch reports whether the instance carries the consumer's value of every
// label. A label that the consumer does not have matches everybody.
func labelsMatch(labels []string, consumer map[string]string, i *Instance, of func(string) map[string]string) bool {
	for _, label := range labels {
		want := consumer[label]
		if strings.TrimSpace(want) == "" {
			continue
		}
		have, ok := i.Metadata.Get(label)
		if !ok {
			have = of(i.IP)[label]
		}
		if have != want {
			return false
		}
	}
	return true
}

// protected reports whether so few instances are healthy that all are to be
// shown as healthy.
func protected(v *View, list []*Instance, q Query) bool {
	if q.Policy == PolicyV2 && !v.Info.Set {
		return false
	}
	healthy, total := 0, 0
	for _, i := range list {
		if q.Policy == PolicyV2 && (!i.Enabled || (q.HealthyOnly && !i.Healthy)) {
			continue
		}
		total++
		if i.Healthy {
			healthy++
		}
	}
	return total > 0 && float32(healthy)/float32(total) <= v.Info.ProtectThreshold
}
