package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func (a *app) deregisterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deregister SERVICE IP:PORT",
		Short: "Deregister an instance",
		Long: `Deregister an instance of either kind, whoever registered it, over the HTTP API
of Nacos 1.x or 3.x. A client that still beats registers it again with its next
beat, and what a gRPC client registered stays as long as its connection.`,
		Args:              arguments(2, 2),
		ValidArgsFunction: a.completeInstance,
	}
	r := registration{}
	cmd.Flags().StringVar(&r.cluster, "cluster", "DEFAULT", "The cluster of the service that it is in.")
	cmd.Flags().BoolVar(&r.persistent, "persistent", false, "Deregister it only if it is a persistent instance.")
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
		return c.notThere(r)
	}
	gone, err := c.remove(ctx, r)
	if err == nil && !gone && !r.persistent {
		other := *r
		other.persistent = true
		var refused *refusedError
		if gone, err = c.remove(ctx, &other); errors.As(err, &refused) {
			err = nil // servers of 2.x and 3.x refuse it for the wrong kind
		}
		if gone {
			r = &other
		}
	}
	switch {
	case err != nil:
		return err
	case !gone:
		return &keptError{r}
	}
	return c.say("deregistered", r)
}

// keptError is of an instance that is still there when it was deregistered.
type keptError struct{ r *registration }

func (e *keptError) Error() string {
	return fmt.Sprintf("%s is still in %s: a client keeps it alive; see `rollcall list %s`", e.r.instance, e.r.service, e.r.service)
}

// remove takes an instance of one kind away and reports whether it is gone.
func (c *client) remove(ctx context.Context, r *registration) (gone bool, err error) {
	_, err = c.either(ctx, "instances",
		call{http.MethodDelete, instanceV1, r.target()},
		call{http.MethodDelete, instanceV3, r.plainTarget()})
	if err != nil {
		return false, err
	}
	there, err := c.isThere(ctx, r)
	return !there, err
}

// The calls for one instance.
const (
	instanceV1      = "/nacos/v1/ns/instance"
	instanceV3      = "/nacos/v3/client/ns/instance"
	instanceAdminV3 = "/nacos/v3/admin/ns/instance"
)

// isThere reports whether an instance is registered. Servers of 1.x answer 500 for one
// that is not, and tell it from other failures by their text alone; later ones answer
// 404. Where the text says nothing, what clients see decides.
func (c *client) isThere(ctx context.Context, r *registration) (bool, error) {
	_, err := c.either(ctx, "instances",
		call{http.MethodGet, instanceV1, r.target()},
		call{http.MethodGet, instanceAdminV3, r.plainTarget()})
	refused, ok := errors.AsType[*refusedError](err)
	switch {
	case ok && refused.isNotThere():
		return false, nil
	case ok && refused.status == http.StatusInternalServerError:
		in, err := c.seen(ctx, r)
		return in != nil, err
	}
	return err == nil, err
}
