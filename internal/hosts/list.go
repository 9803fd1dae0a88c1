package hosts

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
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

// List is the answer to a look-up. Its bytes are shared and must not be changed.
type List struct {
	// Array is a JSON array.
	Array []byte
	// Tail ends a message of gRPC with it, as [grpcv2.AppendServiceTail] does; nil
	// when there is no such service. Array is a part of it, so that one encoding
	// serves all protocols.
	Tail []byte
	// Protected: so few instances are healthy that all are shown so.
	Protected bool
}

// Select returns the instances of view that f selects, by the rules of 2.x. view
// is nil when there is no such service.
func Select(e *naming.Encoder, view *registry.View, f Filter) List {
	if view == nil {
		return List{Array: []byte("[]")}
	}
	clusters, some := inView(view, f.Clusters)
	if !some {
		return listOf(e.Encode(view, "hosts of nobody", func(b []byte) []byte { return appendTail(b, view, &registry.Selection{}) }))
	}
	return listOf(e.Encode(view, key(clusters, f.HealthyOnly), func(b []byte) []byte {
		sel := registry.Select(view, registry.Query{
			Clusters: clusters, HealthyOnly: f.HealthyOnly, Policy: registry.PolicyV2,
		})
		return appendTail(b, view, &sel)
	}))
}

func appendTail(b []byte, view *registry.View, sel *registry.Selection) []byte {
	b = slices.Grow(b, tailLen(sel.Instances, view.Grouped))
	tail := grpcv2.ServiceTail{LastRefTime: view.Revision, Protected: sel.Protected}
	return grpcv2.AppendServiceTail(b, tail, func(b []byte) []byte {
		for n, i := range sel.Instances {
			if n > 0 {
				b = append(b, ',')
			}
			b = Append(b, i, sel.Healthy(i), view.Grouped)
		}
		return b
	})
}

// listOf finds the parts of a tail.
func listOf(tail []byte) List {
	const before, after = `"hosts":`, `,"lastRefTime":`
	end := bytes.LastIndex(tail, []byte(after))
	return List{Array: tail[len(before):end:end], Tail: tail, Protected: bytes.HasSuffix(tail, []byte("true}}"))}
}

// tailLen is about the length of the encoded instances.
func tailLen(list []*registry.Instance, grouped string) int {
	const fixed = 280 // names of the members, flags, numbers
	n := 100 + len(list)*(fixed+2*len(grouped))
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
	name := "hosts"
	if healthyOnly {
		name = "hosts healthy"
	}
	if clusters == nil {
		return name
	}
	return name + " in " + strings.Join(clusters, ",")
}
