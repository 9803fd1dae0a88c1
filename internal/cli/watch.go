package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func (a *app) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [SERVICE]",
		Short: "Show the instances of a service, or the services, and each change as it comes",
		Long: `Show the instances of a service and then each change, as clients of Rollcall or
of a Nacos server are told of them, until interrupted: + for what came, - for what
went, and ~ for what changed, with what was before. Without a service, show which
services of a group there are.

While no server can be reached, what was shown stands; when one is back, what
differs is shown. With --json each change is one object a line; the first has all
there is.`,
		Example: `  rollcall watch orders
  rollcall watch --group billing --json`,
		Args:              arguments(0, 1),
		ValidArgsFunction: a.completeService,
	}
	group := cmd.Flags().String("group", defaultGroup, "The group of the services, where * stands for any text.")
	shown := addInstanceFlags(cmd)
	return a.sdkCommand(cmd, "auto", func(ctx context.Context, c *client, args []string) error {
		if len(args) == 0 {
			return c.watch(ctx, func(v *viewer) error { return v.services(ctx, *group) })
		}
		s, err := parseService(args[0])
		if err != nil {
			return err
		}
		return c.watch(ctx, func(v *viewer) error { return v.instances(ctx, s, shown()) })
	})
}

// watch runs what shows changes, and beside it tells of the connection. An interruption
// is how it ends.
func (c *client) watch(ctx context.Context, show func(v *viewer) error) error {
	err := c.withLastingSDK(ctx, func(sdk *rollcall.Client) error {
		stop := c.tell(ctx, sdk, nil)
		defer stop()
		return show(&viewer{client: c, sdk: sdk, table: layout{width: c.width, parts: true}, known: map[instanceKey]*rollcall.Instance{}})
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// viewer shows what happens.
type viewer struct {
	client *client
	sdk    *rollcall.Client
	table  layout // of all parts
	begun  bool   // whether the heading has been shown
	known  map[instanceKey]*rollcall.Instance
}

// The marks of changes.
const (
	added   = "+"
	removed = "-"
	changed = "~"
)

// rows prints rows, before the first of them the heading.
func (v *viewer) rows(heading []string, write func(w io.Writer)) error {
	return v.table.print(v.client.out, func(w io.Writer) {
		if !v.begun {
			row(w, heading...)
			v.begun = true
		}
		write(w)
	})
}

// line prints one object of JSON.
func (v *viewer) line(object any) error {
	enc := json.NewEncoder(v.client.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}
