package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
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

// serviceNames returns the names of services that begin with what was typed.
func (a *app) serviceNames(cmd *cobra.Command, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := a.clientOf(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	all, err := c.services(ctx, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, s := range all.Services {
		if name := nameOf(s.Service); strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
