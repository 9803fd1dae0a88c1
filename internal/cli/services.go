package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func (a *app) servicesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "services",
		Short: "List the names of services, of any server",
		Long: `List the names of the services in a group, of Rollcall or of a Nacos server.
What Rollcall knows beside the names is in ` + "`rollcall list`" + `.`,
		Args: arguments(0, 0),
	}
	group := cmd.Flags().String("group", defaultGroup, "The group.")
	return a.sdkCommand(cmd, "http", func(ctx context.Context, c *client, _ []string) error {
		return c.withSDK(ctx, func(sdk *rollcall.Client) error { return c.showNames(ctx, sdk, *group) })
	})
}

// serviceNames is what services prints as JSON.
type serviceNames struct {
	Namespace string   `json:"namespace"`
	Group     string   `json:"group"`
	Services  []string `json:"services"`
}

func (c *client) showNames(ctx context.Context, sdk *rollcall.Client, group string) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	all := serviceNames{Namespace: c.space(), Group: group, Services: []string{}}
	for s, err := range sdk.Services(ctx, rollcall.ServiceQuery{Group: group}) {
		if err != nil {
			return err
		}
		all.Services = append(all.Services, s.Name)
	}
	return c.show(all, func(w io.Writer) {
		if len(all.Services) == 0 {
			fmt.Fprintf(w, "there are no services in group %s of namespace %s\n", group, c.space())
			return
		}
		row(w, "SERVICE")
		for _, name := range all.Services {
			row(w, serviceName{group, name}.String())
		}
	})
}
