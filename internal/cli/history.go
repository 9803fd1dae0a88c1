package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// historyFlags are what chooses events.
type historyFlags struct {
	service, group, cluster, ip, port string
	kinds                             []string
	since, until                      string
	limit                             int
	pushes, follow                    bool
}

func (a *app) historyCommand() *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show what changed, when, and who or what made it",
		Long: `Show what changed, when, and who or what made it: the latest events that fit,
the oldest of them first. Without --service and --namespace those of all
namespaces are shown.

--since and --until take an age such as 15m, a time such as
2006-01-02T15:04:05Z, or milliseconds since 1970.`,
		Example: `  rollcall history --service orders --since 1h
  rollcall history --ip 10.0.0.7 --port 8080 --kind registered,removed
  rollcall history --service orders --pushes --follow`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.service, "service", "", "Only events of this service, or group@@service.")
	flags.StringVar(&f.group, "group", "", "Only events of this group.")
	flags.StringVar(&f.cluster, "cluster", "", "Only events of instances in this cluster.")
	flags.StringVar(&f.ip, "ip", "", "Only events of instances with this address.")
	flags.StringVar(&f.port, "port", "", "Only events of instances with this port.")
	flags.StringSliceVar(&f.kinds, "kind", nil, "Only events of these kinds, such as registered,removed,unhealthy.")
	flags.StringVar(&f.since, "since", "", "Only events since then.")
	flags.StringVar(&f.until, "until", "", "Only events until then.")
	flags.IntVar(&f.limit, "limit", 50, "How many events to show, the latest ones.")
	flags.BoolVar(&f.pushes, "pushes", false, "Also show which subscriber acknowledged which change, and after how long.")
	flags.BoolVarP(&f.follow, "follow", "f", false, "Go on with what happens, until interrupted.")
	a.clientCommand(cmd, func(ctx context.Context, c *client, _ []string) error {
		if err := f.check(); err != nil {
			return &usageError{err}
		}
		if f.follow {
			return c.follow(ctx, &f)
		}
		return c.history(ctx, &f)
	})
	a.completeHistory(cmd)
	return cmd
}

// completeHistory tells the shell what values flags take. The flags are there, so
// there is no error.
func (a *app) completeHistory(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("service", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.serviceNames(cmd, typed)
	})
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]cobra.Completion{
		"registered", "updated", "removed", "healthy", "unhealthy", "service-created", "service-updated", "service-removed",
		"subscribed", "unsubscribed", "expiry-held", "expiry-released", "switch-set",
	}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *historyFlags) check() error {
	switch {
	case f.limit <= 0:
		return fmt.Errorf("limit: %d is no number of events; write 1 or more", f.limit)
	case f.follow && f.until != "":
		return errors.New("until: what is followed has no end; leave out --until or --follow")
	case f.pushes && (f.ip != "" || f.port != "" || f.cluster != "" || len(f.kinds) > 0):
		return errors.New("pushes: they are of services, not of instances, and have kinds of their own; leave out --ip, --port, --cluster and --kind")
	}
	return nil
}

// query returns the parameters that both histories have.
func (f *historyFlags) query(c *client) url.Values {
	return parameters("namespace", c.namespace, "service", f.service, "group", f.group, "since", f.since, "until", f.until)
}

// feeds returns the histories that are to be read.
func (f *historyFlags) feeds(c *client) []*feed {
	q := f.query(c)
	for name, value := range parameters("cluster", f.cluster, "ip", f.ip, "port", f.port, "kind", strings.Join(f.kinds, ",")) {
		q[name] = value
	}
	feeds := []*feed{{read: c.eventPage, query: q}}
	if f.pushes {
		feeds = append(feeds, &feed{read: c.pushPage, query: f.query(c)})
	}
	return feeds
}

// history shows the latest entries, the oldest of them first.
func (c *client) history(ctx context.Context, f *historyFlags) error {
	entries, err := latest(ctx, f.feeds(c), f.limit)
	if err != nil {
		return err
	}
	answer := struct {
		Events []*opsv1.Event `json:"events"`
		Pushes []*opsv1.Push  `json:"pushes,omitempty"`
	}{Events: []*opsv1.Event{}}
	for _, e := range entries {
		if e.event != nil {
			answer.Events = append(answer.Events, e.event)
		} else {
			answer.Pushes = append(answer.Pushes, e.push)
		}
	}
	return c.show(answer, func(w io.Writer) {
		if len(entries) == 0 {
			fmt.Fprintln(w, "the history has nothing of that kind")
			return
		}
		heading := f.service == "" && c.namespace == ""
		entryHeading(w, heading)
		for i := range entries {
			entries[i].row(w, heading)
		}
	})
}
