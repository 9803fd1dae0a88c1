package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// instanceKey is what makes two instances of a service the same.
type instanceKey struct {
	address string // host:port
	cluster string
}

// instanceChange is what watch prints as JSON of a service.
type instanceChange struct {
	Time      int64          `json:"time"` // milliseconds since the epoch
	Instances int            `json:"instances"`
	Protected bool           `json:"protected"`
	Added     []instanceView `json:"added"`
	Changed   []instanceView `json:"changed"`
	Removed   []instanceView `json:"removed"`
}

// instances shows the instances of a service until ctx ends.
func (v *viewer) instances(ctx context.Context, s serviceName, filters []rollcall.FilterOption) error {
	var options []rollcall.WatchOption
	for _, f := range filters {
		options = append(options, f)
	}
	bounded, cancel := v.client.asked(ctx)
	w, err := v.sdk.Watch(bounded, s.sdk(v.client.namespace), options...)
	cancel()
	if err != nil {
		return err
	}
	defer w.Close()
	protected := false
	for u, err := range w.All(ctx) {
		if err != nil {
			return err
		}
		quiet := len(u.Added)+len(u.Changed)+len(u.Removed) == 0 && u.Snapshot.Protected() == protected
		if v.begun && quiet {
			continue
		}
		protected = u.Snapshot.Protected()
		if err := v.update(&u, s); err != nil {
			return err
		}
	}
	return nil
}

// update shows one change of a service.
func (v *viewer) update(u *rollcall.Update, s serviceName) error {
	at := time.Now().UnixMilli()
	if v.client.json {
		v.begun = true
		return v.line(instanceChange{
			at, u.Snapshot.Len(), u.Snapshot.Protected(), viewsOf(u.Added), viewsOf(u.Changed), viewsOf(u.Removed),
		})
	}
	shown := watchedWide
	if width := v.client.width; width > 0 && width < wideWatch {
		shown = watchedNarrow
	}
	return v.rows(shown.heading, func(w io.Writer) {
		write := func(mark string, list []*rollcall.Instance) {
			for _, in := range list {
				key := instanceKey{in.Addr(), in.Cluster}
				cells := seenInstance(in, u.Snapshot.Protected() && mark != removed)
				cells[remarkCell] = joined(before(v.known[key], in), cells[remarkCell])
				row(w, shown.cells(at, mark, cells)...)
				v.known[key] = in
				if mark == removed {
					delete(v.known, key)
				}
			}
		}
		write(added, u.Added)
		write(changed, u.Changed)
		write(removed, u.Removed)
		if u.Snapshot.Len() == 0 {
			fmt.Fprintf(w, "%s has no instances\n", s)
		}
	})
}

// wideWatch is how wide a terminal must be for all columns of watch, in columns.
const wideWatch = 110

// watchedTable is what watch shows of instances.
type watchedTable struct {
	heading []string
	cells   func(at int64, mark string, seen []string) []string
}

// watchedWide has everything. watchedNarrow fits 80 columns: it leaves out the date, and has
// the kind and the cluster among the remarks where they are not the usual ones.
var (
	watchedWide = watchedTable{
		[]string{"TIME", "", "INSTANCE", "CLUSTER", "HEALTH", "WEIGHT", "KIND", "REMARKS", "METADATA"},
		func(at int64, mark string, seen []string) []string {
			return append([]string{stamp(at), mark}, seen...)
		},
	}
	watchedNarrow = watchedTable{
		[]string{"UTC", "", "INSTANCE", "HEALTH", "WEIGHT", "REMARKS", "METADATA"},
		func(at int64, mark string, seen []string) []string {
			remarks := seen[remarkCell]
			if seen[kindCell] != kind(true) {
				remarks = joined(seen[kindCell], remarks)
			}
			if seen[clusterCell] != rollcall.DefaultCluster {
				remarks = joined("cluster "+seen[clusterCell], remarks)
			}
			return []string{clock(at), mark, seen[0], seen[healthCell], seen[weightCell], remarks, seen[metadataCell]}
		},
	}
)

func joined(texts ...string) string { return strings.Join(nonEmpty(texts...), "; ") }

func viewsOf(list []*rollcall.Instance) []instanceView {
	views := []instanceView{}
	for _, in := range list {
		views = append(views, viewOf(in))
	}
	return views
}

// before says what of an instance was different; nothing of one that was not known.
func before(was, is *rollcall.Instance) string {
	if was == nil || was == is {
		return ""
	}
	var parts []string
	if was.Healthy != is.Healthy {
		parts = append(parts, "was "+health(was.Healthy))
	}
	if was.Enabled != is.Enabled {
		parts = append(parts, map[bool]string{true: "was enabled", false: "was disabled"}[was.Enabled])
	}
	if was.Weight != is.Weight {
		parts = append(parts, "weight was "+weight(was.Weight))
	}
	if was.Ephemeral != is.Ephemeral {
		parts = append(parts, "was "+kind(was.Ephemeral))
	}
	keys := maps.Clone(was.Metadata)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, is.Metadata)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, had := was.Metadata[key]
		if value, has := is.Metadata[key]; had && (!has || value != old) {
			parts = append(parts, key+" was "+old)
		} else if !had {
			parts = append(parts, key+" is new")
		}
	}
	return strings.Join(parts, ", ")
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
