package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	rollcall "github.com/rollcall-registry/rollcall/client"
)

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [SERVICE]",
		Short: "List the services, or the instances of one",
		Long: `List the services of a namespace with their instances counted, or the
instances of one service with their health, the age of their last beat, and who
keeps them alive. A service of another group than DEFAULT_GROUP is group@@service.
Of a server that is no Rollcall it shows what clients see, as services and
instances do.`,
		Args:              arguments(0, 1),
		ValidArgsFunction: a.completeService,
	}
	group := cmd.Flags().String("group", "", "List the services of this group alone.")
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		if len(args) == 0 {
			err := c.listServices(ctx, *group)
			return c.orElsewhere(ctx, err, func(sdk *rollcall.Client) error {
				return c.showNames(ctx, sdk, cmp.Or(*group, defaultGroup))
			})
		}
		if *group != "" {
			return &usageError{fmt.Errorf("group: it goes with a list of services; name the service %s@@%s", *group, args[0])}
		}
		s, err := parseService(args[0])
		if err != nil {
			return err
		}
		err = c.listInstances(ctx, s)
		return c.orElsewhere(ctx, err, func(sdk *rollcall.Client) error {
			return c.showInstances(ctx, sdk, s, nil)
		})
	})
}

// orElsewhere asks by way of the SDK if an error says that the server is no Rollcall. If
// it is nothing that the SDK knows either, the error stands.
func (c *client) orElsewhere(ctx context.Context, err error, ask func(*rollcall.Client) error) error {
	if !elsewhere(err) {
		return err
	}
	c.via = rollcall.HTTP
	asked := c.withSDK(ctx, ask)
	if asked == nil || errors.Is(asked, rollcall.ErrUnauthorized) || errors.Is(asked, rollcall.ErrForbidden) {
		return asked
	}
	return err
}

func (c *client) listServices(ctx context.Context, group string) error {
	all, err := c.services(ctx, group)
	if err != nil {
		return err
	}
	return c.show(all, func(w io.Writer) {
		if len(all.Services) == 0 {
			fmt.Fprintf(w, "there are no services in namespace %s\n", c.space())
			return
		}
		row(w, "SERVICE", "HEALTHY", "INSTANCES", "SUBSCRIBERS", "REMARKS")
		for _, s := range all.Services {
			row(w, nameOf(s.Service), strconv.Itoa(s.Healthy), strconv.Itoa(s.Instances), strconv.Itoa(s.Subscribers), held(s.Held))
		}
	})
}

// held says whether the brake holds the expiry of a service.
func held(held bool) string {
	if held {
		return "expiry held"
	}
	return ""
}

func (c *client) listInstances(ctx context.Context, s serviceName) error {
	all, err := c.instances(ctx, s)
	if err != nil {
		return err
	}
	return c.show(all, func(w io.Writer) {
		if len(all.Instances) == 0 {
			fmt.Fprintf(w, "%s has no instances\n", s)
			return
		}
		row(w, "INSTANCE", "CLUSTER", "HEALTH", "WEIGHT", "KIND", "LAST BEAT", "OWNER", "REMARKS")
		for i := range all.Instances {
			instanceRow(w, &all.Instances[i], remarks(&all.Instances[i]))
		}
	})
}

func instanceRow(w io.Writer, i *opsv1.InstanceState, last ...string) {
	row(w, append([]string{
		hostPort(i.IP, i.Port), i.Cluster, health(i.Healthy), weight(i.Weight), kind(i.Ephemeral),
		age(i.SinceBeat), owners(i.Owners),
	}, last...)...)
}
