package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// completionTime bounds what a shell waits for when somebody presses the tab key.
const completionTime = 2 * time.Second

// completeService offers the names of services for the first argument of a
// command, as far as the server answers in time.
func (a *app) completeService(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.serviceNames(cmd, typed)
}

// completeInstance offers the addresses of instances for the second argument.
func (a *app) completeInstance(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeService(cmd, args, typed)
	}
	s, err := parseService(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return a.complete(cmd, typed, func(ctx context.Context, c *client, sdk *rollcall.Client) (list []string, err error) {
		found, err := sdk.Lookup(ctx, s.sdk(c.namespace))
		if err != nil {
			return nil, err
		}
		for in := range found.All() {
			list = append(list, in.Addr())
		}
		return list, nil
	})
}

// serviceNames returns the names of services that begin with what was typed.
func (a *app) serviceNames(cmd *cobra.Command, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, func(ctx context.Context, c *client, sdk *rollcall.Client) (list []string, err error) {
		all, err := c.services(ctx, "")
		if elsewhere(err) {
			return groupNames(ctx, sdk)
		}
		for _, s := range all.Services {
			list = append(list, nameOf(s.Service))
		}
		return list, err
	})
}

// groupNames returns the names of services in the default group.
func groupNames(ctx context.Context, sdk *rollcall.Client) (list []string, err error) {
	for s, err := range sdk.Services(ctx, rollcall.ServiceQuery{}) {
		if err != nil {
			return nil, err
		}
		list = append(list, fullName(s))
	}
	return list, nil
}

// complete offers those that ask returns and that begin with what was typed.
func (a *app) complete(cmd *cobra.Command, typed string, ask func(context.Context, *client, *rollcall.Client) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := a.clientOf(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.http.CloseIdleConnections()
	c.via = rollcall.HTTP // a connection of gRPC takes longer
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var names []cobra.Completion
	err = c.withSDK(ctx, func(sdk *rollcall.Client) error {
		all, err := ask(ctx, c, sdk)
		for _, name := range all {
			if strings.HasPrefix(name, typed) {
				names = append(names, name)
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
