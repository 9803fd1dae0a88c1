package hosts

import (
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Filter is what a look-up asks of a service.
type Filter struct {
	// Clusters is the text of the look-up: names with commas between them, or
	// nothing for all clusters.
	Clusters    string
	HealthyOnly bool
}

// List is the answer to a look-up.
type List struct {
	// Array is a JSON array. It is shared and must not be changed.
	Array []byte
	// Protected: so few instances are healthy that all are shown so.
	Protected bool
}

var nobody = List{Array: []byte("[]")}

// Select returns the instances of view that f selects, by the rules of 2.x. view
// is nil when there is no such service.
func Select(e *naming.Encoder, view *registry.View, f Filter) List {
	if view == nil {
		return nobody
	}
	clusters, some := inView(view, f.Clusters)
	if !some {
		return nobody
	}
	// The first byte is the flag of the list.
	b := e.Encode(view, key(clusters, f.HealthyOnly), func(b []byte) []byte {
		sel := registry.Select(view, registry.Query{
			Clusters: clusters, HealthyOnly: f.HealthyOnly, Policy: registry.PolicyV2,
		})
		return appendList(b, &sel, view.Grouped)
	})
	return List{Array: b[1:], Protected: b[0] == protected}
}

// The flags of an encoded list.
const (
	ordinary  = 'o'
	protected = 'p'
)

func appendList(b []byte, sel *registry.Selection, grouped string) []byte {
	flag := byte(ordinary)
	if sel.Protected {
		flag = protected
	}
	b = slices.Grow(b, listLen(sel.Instances, grouped))
	b = append(b, flag, '[')
	for n, i := range sel.Instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = Append(b, i, sel.Healthy(i), grouped)
	}
	return append(b, ']')
}

// listLen is about the length of the encoded instances.
func listLen(list []*registry.Instance, grouped string) int {
	const fixed = 280 // names of the members, flags, numbers
	n := 3 + len(list)*(fixed+2*len(grouped))
	for _, i := range list {
		n += 2*len(i.IP) + 2*len(i.Cluster) + len(i.Metadata)
	}
	return n
}

// inView returns the clusters of the view that a text names, each once and sorted;
// nil means all of them. some is false when it names clusters and the view has
// none of those. Blanks around a name do not count.
func inView(view *registry.View, text string) (clusters []string, some bool) {
	named := false
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		named = true
		if c := view.Cluster(name); c != nil && !slices.Contains(clusters, c.Name) {
			clusters = append(clusters, c.Name)
		}
	}
	if len(clusters) == len(view.Clusters) {
		return nil, true // all there are: one form for both ways to ask
	}
	slices.Sort(clusters)
	return clusters, !named || len(clusters) > 0
}

// key names the form of a filter among those of a view.
func key(clusters []string, healthyOnly bool) string {
	name := "v2 hosts"
	if healthyOnly {
		name = "v2 hosts healthy"
	}
	if clusters == nil {
		return name
	}
	return name + " in " + strings.Join(clusters, ",")
}
