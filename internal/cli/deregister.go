package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) deregisterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deregister SERVICE IP:PORT",
		Short: "Deregister an instance",
		Long: `Deregister an instance, over the HTTP API of Nacos 1.x. A client that still
beats registers it again with its next beat, and what a gRPC client registered
stays as long as its connection.`,
		Args:              arguments(2, 2),
		ValidArgsFunction: a.completeService,
	}
	r := registration{}
	cmd.Flags().StringVar(&r.cluster, "cluster", "DEFAULT", "The cluster of the service that it is in.")
	cmd.Flags().BoolVar(&r.persistent, "persistent", false, "It is a persistent instance.")
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		if err := r.read(c, args, nil); err != nil {
			return err
		}
		return c.deregister(ctx, &r)
	})
}

// deregister takes an instance away and makes sure that it is gone, since the call
// itself succeeds whatever it finds.
func (c *client) deregister(ctx context.Context, r *registration) error {
	there, err := c.isThere(ctx, r)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%s is not in cluster %s of %s, namespace %s; see `rollcall why %s %s`",
			r.instance, r.cluster, r.service, c.space(), r.service, r.instance)
	}
	if err := c.callInstance(ctx, http.MethodDelete, r.target()); err != nil {
		return err
	}
	if there, err = c.isThere(ctx, r); err != nil {
		return err
	}
	switch {
	case there && !r.persistent:
		return fmt.Errorf("%s is still in %s: it is persistent, which --persistent is for, or a connection keeps it; see `rollcall list %s`",
			r.instance, r.service, r.service)
	case there:
		return fmt.Errorf("%s is still in %s: a client keeps it alive; see `rollcall list %s`", r.instance, r.service, r.service)
	}
	return c.say("deregistered", r)
}

// isThere reports whether an instance is registered. Servers of 1.x answer 500 for
// one that is not, and tell it from other failures by their text alone: "no
// matched ip found!" and the like.
func (c *client) isThere(ctx context.Context, r *registration) (bool, error) {
	err := c.callInstance(ctx, http.MethodGet, r.target())
	if refused, ok := errors.AsType[*refusedError](err); ok && strings.Contains(refused.text, "found") {
		return false, nil
	}
	return err == nil, err
}
