package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// defaultDrain is enough for clients that poll, as they do each 10 s.
const defaultDrain = 10 * time.Second

// drain is what a command is to drain.
type drain struct {
	registration
	wait       time.Duration
	deregister bool
}

func (a *app) drainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain SERVICE IP:PORT",
		Short: "Give an instance no weight, so that it gets no new calls",
		Long: `Give an instance the weight 0, so that clients send it no new calls, and wait for
them to hear of it. It stays registered, and --weight 1 takes it back; with
--deregister it is deregistered after the wait. All else about it stays as it is.

At Rollcall this is an override by an operator, which also holds when the
instance is registered again, but not when it was deregistered before; at Nacos it
is a change of the instance. What a connection keeps alive is not taken away by
--deregister: it stays drained, and the exit code is 1. What a client beats for
comes back with its next beat and with the weight that the client gives it.`,
		Example: `  rollcall drain orders 10.0.0.7:8080 --wait 30s --deregister
  rollcall drain orders 10.0.0.7:8080 --weight 1`,
		Args:              arguments(2, 2),
		ValidArgsFunction: a.completeInstance,
	}
	d := drain{}
	flags := cmd.Flags()
	flags.StringVar(&d.cluster, "cluster", "DEFAULT", "The cluster of the service that it is in.")
	flags.Float64Var(&d.weight, "weight", 0, "The weight to give it.")
	flags.DurationVar(&d.wait, "wait", defaultDrain, "How long to wait when it has no weight any more.")
	flags.BoolVar(&d.deregister, "deregister", false, "Deregister it then.")
	return a.sdkCommand(cmd, "http", func(ctx context.Context, c *client, args []string) error {
		if d.deregister && d.weight != 0 {
			return &usageError{errors.New("deregister: it goes with weight 0")}
		}
		if d.wait < 0 {
			return &usageError{fmt.Errorf("wait: %v is no time to wait; write 0s or more", d.wait)}
		}
		if err := checkWeight(d.weight); err != nil {
			return err
		}
		if err := d.read(c, args, nil); err != nil {
			return err
		}
		return c.drain(ctx, &d)
	})
}

func (c *client) drain(ctx context.Context, d *drain) error {
	in, err := c.find(ctx, &d.registration)
	if err != nil {
		return err
	}
	d.metadata, d.disabled, d.persistent = in.Metadata, !in.Enabled, !in.Ephemeral
	if err := c.reweigh(ctx, &d.registration); err != nil {
		return err
	}
	if d.weight > 0 {
		return c.say("reweighed", &d.registration)
	}
	if !c.json {
		fmt.Fprintf(c.notes, "%s of %s has no weight any more; waiting %v\n", d.instance, d.service, d.wait)
	}
	timer := time.NewTimer(d.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return fmt.Errorf("%w; it stays drained", context.Cause(ctx))
	}
	if d.deregister {
		return c.deregisterDrained(ctx, &d.registration)
	}
	return c.say("drained", &d.registration)
}

// deregisterDrained deregisters an instance that has no weight. One that is kept alive has
// lost what was laid over it, and gets it again.
func (c *client) deregisterDrained(ctx context.Context, r *registration) error {
	err := c.deregister(ctx, r)
	if _, kept := errors.AsType[*keptError](err); !kept {
		return err
	}
	if again := c.reweigh(ctx, r); again != nil {
		return fmt.Errorf("%w; it has its own weight again (%w)", err, again)
	}
	return fmt.Errorf("%w; it stays drained", err)
}

// find looks an instance up that must be there.
func (c *client) find(ctx context.Context, r *registration) (*rollcall.Instance, error) {
	in, err := c.seen(ctx, r)
	if err == nil && in == nil {
		err = c.notThere(r)
	}
	return in, err
}

// seen looks an instance up as clients do; nil if it is not there.
func (c *client) seen(ctx context.Context, r *registration) (in *rollcall.Instance, err error) {
	err = c.withSDK(ctx, func(sdk *rollcall.Client) error {
		ctx, cancel := c.asked(ctx)
		defer cancel()
		found, err := sdk.Lookup(ctx, r.service.sdk(c.namespace), rollcall.WithClusters(r.cluster))
		if err != nil {
			return err
		}
		in = r.in(found)
		return nil
	})
	return in, err
}

// in returns the instance as a snapshot of its cluster has it; nil if it is not there.
func (r *registration) in(s *rollcall.Snapshot) *rollcall.Instance {
	for in := range s.All() {
		if sameHost(in.IP, r.instance.host) && in.Port == r.instance.number {
			return in
		}
	}
	return nil
}

// notThere is the error of a command about an instance that is not there.
func (c *client) notThere(r *registration) error {
	return fmt.Errorf("%s is not in cluster %s of %s, namespace %s; see `rollcall why %s %s`",
		r.instance, r.cluster, r.service, c.space(), r.service, r.instance)
}

// sameHost compares two spellings of an address, or two names.
func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Unmap() == y.Unmap()
}

// reweigh changes the weight of an instance. The calls take all of its fields.
func (c *client) reweigh(ctx context.Context, r *registration) error {
	metadata, err := json.Marshal(r.metadata)
	if err != nil {
		return err
	}
	if r.metadata == nil {
		metadata = []byte("{}")
	}
	with := func(q url.Values) url.Values {
		q.Set("weight", weight(r.weight))
		q.Set("enabled", strconv.FormatBool(!r.disabled))
		q.Set("metadata", string(metadata))
		return q
	}
	_, err = c.either(ctx, "changes of instances",
		call{http.MethodPut, instanceV1, with(r.target())},
		call{http.MethodPut, instanceAdminV3, with(r.plainTarget())})
	return err
}
