package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func (a *app) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [SERVICE]",
		Short: "Show the instances of a service, or the services, and each change as it comes",
		Long: `Show the instances of a service and then each change, as clients of Rollcall or
of a Nacos server are told of them, until interrupted. Without a service, show
which services of a group there are.

With --json each change is one object a line; the first has all there is.`,
		Example: `  rollcall watch orders
  rollcall watch --group billing --json`,
		Args:              arguments(0, 1),
		ValidArgsFunction: a.completeService,
	}
	group := cmd.Flags().String("group", defaultGroup, "The group of the services, where * stands for any text.")
	shown := addInstanceFlags(cmd)
	return a.sdkCommand(cmd, "auto", func(ctx context.Context, c *client, sdk *rollcall.Client, args []string) error {
		v := &viewer{client: c, sdk: sdk}
		if len(args) == 0 {
			return v.run(ctx, func(ctx context.Context) error { return v.services(ctx, *group) })
		}
		s, err := parseService(args[0])
		if err != nil {
			return err
		}
		return v.run(ctx, func(ctx context.Context) error { return v.instances(ctx, s, shown()) })
	})
}

// viewer shows what happens.
type viewer struct {
	client *client
	sdk    *rollcall.Client
}

// run runs what shows changes, and beside it tells of the connection. An interruption
// is how it ends.
func (v *viewer) run(ctx context.Context, show func(context.Context) error) error {
	inner, stop := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { v.connection(inner) })
	err := show(inner)
	stop()
	telling.Wait()
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// connection tells when the connection, which is there, goes and comes.
func (v *viewer) connection(ctx context.Context) {
	lost := false
	for s := range v.sdk.StatusChanges(ctx) {
		switch {
		case s.State == rollcall.Connected && lost:
			fmt.Fprintf(v.client.notes, "connected to %s over %s\n", s.Server, s.Protocol)
			lost = false
		case s.State == rollcall.Connecting && !lost:
			fmt.Fprintf(v.client.notes, "not connected, going on: %v\n", s.LastError)
			lost = true
		}
	}
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
	heading := true
	for u, err := range w.All(ctx) {
		if err == nil {
			err = v.update(&u, s, heading)
		}
		if err != nil {
			return err
		}
		heading = false
	}
	return nil
}

// update shows one change of a service.
func (v *viewer) update(u *rollcall.Update, s serviceName, heading bool) error {
	at := u.Snapshot.Time()
	if v.client.json {
		views := func(list []*rollcall.Instance) []instanceView {
			out := []instanceView{}
			for _, in := range list {
				out = append(out, viewOf(in))
			}
			return out
		}
		return v.line(instanceChange{
			at.UnixMilli(), u.Snapshot.Len(), u.Snapshot.Protected(), views(u.Added), views(u.Changed), views(u.Removed),
		})
	}
	return v.table(func(w io.Writer) {
		if heading {
			row(w, "TIME", "CHANGE", "INSTANCE", "CLUSTER", "HEALTH", "WEIGHT", "KIND", "REMARKS", "METADATA")
		}
		write := func(change string, list []*rollcall.Instance) {
			for _, in := range list {
				row(w, append([]string{stamp(at.UnixMilli()), change}, seenInstance(in, u.Snapshot.Protected())...)...)
			}
		}
		write("added", u.Added)
		write("changed", u.Changed)
		write("removed", u.Removed)
		if u.Snapshot.Len() == 0 {
			row(w, stamp(at.UnixMilli()), s.String()+" has no instances")
		}
	})
}

// serviceChange is what watch prints as JSON of the list of services.
type serviceChange struct {
	Time     int64    `json:"time"` // milliseconds since the epoch
	Services int      `json:"services"`
	Added    []string `json:"added"`
	Removed  []string `json:"removed"`
}

func (v *viewer) services(ctx context.Context, group string) error {
	bounded, cancel := v.client.asked(ctx)
	w, err := v.sdk.WatchServices(bounded, rollcall.Pattern{Group: group})
	cancel()
	if err != nil {
		return err
	}
	defer w.Close()
	for heading := true; ; heading = false {
		select {
		case u, ok := <-w.Updates():
			if !ok {
				return rollcall.ErrClosed
			}
			if err := v.list(&u, heading); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// list shows one change of the list of services.
func (v *viewer) list(u *rollcall.ServicesUpdate, heading bool) error {
	now := time.Now().UnixMilli()
	names := func(list []rollcall.Service) []string {
		out := []string{}
		for _, s := range list {
			out = append(out, fullName(s))
		}
		return out
	}
	if v.client.json {
		return v.line(serviceChange{now, len(u.Services), names(u.Added), names(u.Removed)})
	}
	return v.table(func(w io.Writer) {
		if heading {
			row(w, "TIME", "CHANGE", "SERVICE")
		}
		for _, name := range names(u.Added) {
			row(w, stamp(now), "added", name)
		}
		for _, name := range names(u.Removed) {
			row(w, stamp(now), "removed", name)
		}
		if heading || len(u.Services) == 0 {
			row(w, stamp(now), "services", strconv.Itoa(len(u.Services)))
		}
	})
}

// line prints one object of JSON.
func (v *viewer) line(object any) error {
	enc := json.NewEncoder(v.client.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// table prints rows whose columns are wide enough that the parts of the table usually
// fit.
func (v *viewer) table(write func(w io.Writer)) error {
	const width = 16
	return v.client.table(width, write)
}
