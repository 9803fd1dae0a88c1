package cli

import (
	"context"
	"maps"
	"slices"
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
	return a.complete(cmd, typed, func(ctx context.Context, c *client) (list []string, err error) {
		err = c.withSDK(ctx, func(sdk *rollcall.Client) error {
			found, err := sdk.Lookup(ctx, s.sdk(c.namespace))
			if err != nil {
				return err
			}
			for in := range found.All() {
				list = append(list, in.Addr())
			}
			return nil
		})
		return list, err
	})
}

// serviceNames returns the names of services that begin with what was typed.
func (a *app) serviceNames(cmd *cobra.Command, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, func(ctx context.Context, c *client) (list []string, err error) {
		all, err := c.services(ctx, "")
		if elsewhere(err) {
			return c.groupNames(ctx)
		}
		for _, s := range all.Services {
			list = append(list, nameOf(s.Service))
		}
		return list, err
	})
}

// groupNames returns the names of services in the default group.
func (c *client) groupNames(ctx context.Context) (list []string, err error) {
	err = c.withSDK(ctx, func(sdk *rollcall.Client) error {
		for s, err := range sdk.Services(ctx, rollcall.ServiceQuery{}) {
			if err != nil {
				return err
			}
			list = append(list, fullName(s))
		}
		return nil
	})
	return list, err
}

// completeNamespaces offers what to do with namespaces, and those to delete.
func (a *app) completeNamespaces(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []cobra.Completion{"create", "delete"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == "delete":
		return a.namespaceIDs(cmd, args, typed)
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) namespaceIDs(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, func(ctx context.Context, c *client) (list []string, err error) {
		all, err := c.namespaces(ctx)
		for _, n := range all {
			list = append(list, n.ID)
		}
		return list, err
	})
}

// completeSwitches offers the names of switches.
func (a *app) completeSwitches(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, typed, func(ctx context.Context, c *client) ([]string, error) {
		all, err := c.readSwitches(ctx)
		return slices.Sorted(maps.Keys(all)), err
	})
}

// completeSettings tells the shell what values the settings take. The flags are there,
// so there is no error.
func (a *app) completeSettings(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc(flagNamespace, a.namespaceIDs)
	for _, flag := range []string{flagServer, flagUser, flagName, "timeout"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// complete offers those that ask returns and that begin with what was typed.
func (a *app) complete(cmd *cobra.Command, typed string, ask func(context.Context, *client) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := a.clientOf(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.http.CloseIdleConnections()
	c.via = rollcall.HTTP // a connection of gRPC takes longer
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	all, err := ask(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
