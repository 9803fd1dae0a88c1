package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// registration is an instance that a command is about.
type registration struct {
	service    serviceName
	instance   endpoint
	namespace  string
	cluster    string
	weight     float64
	metadata   map[string]string
	persistent bool
	disabled   bool
}

func (a *app) registerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "register SERVICE IP:PORT",
		Short: "Register an instance",
		Long: `Register an instance.

An ephemeral instance, the usual kind, lives as long as somebody keeps it alive.
With --beat this command does, over gRPC where the server has it and by beats over
HTTP where not, until it is interrupted, and deregisters the instance then. It
moves to another of the servers, and registers the instance again, as need be.

Without --beat it registers once, over HTTP, and ends. Without beats from elsewhere
the instance is unhealthy after 15 s and gone after 30 s by default. A persistent
instance stays until it is deregistered.`,
		Example: `  rollcall register orders 10.0.0.7:8080 --metadata zone=a --beat
  rollcall register billing@@orders '[2001:db8::7]:8080' --persistent`,
		Args:              arguments(2, 2),
		ValidArgsFunction: a.completeService,
	}
	r := registration{}
	flags := cmd.Flags()
	flags.StringVar(&r.cluster, "cluster", "DEFAULT", "The cluster of the service that it is in.")
	flags.Float64Var(&r.weight, "weight", 1, "Its share of the calls, from 0 to 10000.")
	pairs := flags.StringArray("metadata", nil, "A `key=value` of its metadata. May be given more than once.")
	flags.BoolVar(&r.persistent, "persistent", false, "It stays without beats, and the server probes its health.")
	flags.BoolVar(&r.disabled, "disabled", false, "It is listed to operators and not given to callers.")
	beat := flags.Bool("beat", false, "Keep it alive until interrupted, then deregister.")
	a.sdkCommand(cmd, "", func(ctx context.Context, c *client, args []string) error {
		if err := r.read(c, args, *pairs); err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return err
		}
		if !*beat && !cmd.Flags().Changed(flagVia) {
			c.via = rollcall.HTTP // what is set for all commands is not meant to forbid this
		}
		return c.register(ctx, &r, *beat)
	})
	cmd.Flags().Lookup(flagVia).Usage += ", default auto with --beat and http without"
	return cmd
}

// read completes r by the arguments and the key=value pairs of the metadata.
func (r *registration) read(c *client, args, pairs []string) (err error) {
	if r.service, err = parseService(args[0]); err != nil {
		return err
	}
	if r.instance, err = parseEndpoint(args[1]); err != nil {
		return err
	}
	r.namespace = c.namespace
	r.metadata = map[string]string{}
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return &usageError{fmt.Errorf("metadata: %q is no key=value", pair)}
		}
		r.metadata[key] = value
	}
	return nil
}

// sdk is the instance as the SDK has it.
func (r *registration) sdk() rollcall.Instance {
	return rollcall.Instance{
		IP: r.instance.host, Port: r.instance.number, Cluster: r.cluster, Weight: r.weight, Metadata: r.metadata,
		Healthy: true, Enabled: !r.disabled, Ephemeral: !r.persistent,
	}
}

// maxWeight is the greatest weight of an instance, as of the SDK.
const maxWeight = 10_000

func checkWeight(w float64) error {
	if !(w >= 0 && w <= maxWeight) { // or it is no number
		return &usageError{fmt.Errorf("weight: %v is none; write 0 to %d", w, maxWeight)}
	}
	return nil
}

// check refuses what the SDK would not register either.
func (r *registration) check() error {
	switch {
	case strings.Contains(r.service.name, groupSeparator):
		return &usageError{fmt.Errorf("service: %s parts group and name, and can be in neither; leave it out of %q", groupSeparator, r.service.name)}
	case r.instance.number == 0:
		return &usageError{errors.New("instance: nobody can be called at port 0; write 1 to 65535")}
	}
	return checkWeight(r.weight)
}

// register registers an instance, once or for as long as the command runs.
func (c *client) register(ctx context.Context, r *registration, keep bool) error {
	switch {
	case keep && r.persistent:
		return &usageError{errors.New("beat: a persistent instance stays without; leave out --beat or --persistent")}
	case keep:
		return c.withLastingSDK(ctx, func(sdk *rollcall.Client) error { return c.keep(ctx, sdk, r) })
	case c.via == rollcall.GRPC && !r.persistent:
		return &usageError{fmt.Errorf("%s: over gRPC the instance would go with this command; use http, or --beat to stay", flagVia)}
	}
	if err := c.registerOnce(ctx, r); err != nil {
		return err
	}
	if err := c.say("registered", r); err != nil || r.persistent || c.json {
		return err
	}
	fmt.Fprintln(c.notes, "without beats it does not last (by default it is unhealthy after 15 s and gone after 30 s); --beat keeps it alive")
	return nil
}

// registerOnce registers an instance which nothing here keeps alive: over HTTP without the
// SDK, which would, and would say that an SDK did it.
func (c *client) registerOnce(ctx context.Context, r *registration) error {
	if c.via == rollcall.GRPC {
		return c.withSDK(ctx, func(sdk *rollcall.Client) error {
			_, err := c.registerBy(ctx, sdk, r)
			return err
		})
	}
	metadata, err := json.Marshal(r.metadata)
	if err != nil {
		return err
	}
	with := func(q url.Values) url.Values {
		q.Set("weight", weight(r.weight))
		q.Set("enabled", strconv.FormatBool(!r.disabled))
		q.Set("healthy", "true")
		q.Set("metadata", string(metadata))
		return q
	}
	_, err = c.either(ctx, "registration",
		call{http.MethodPost, instanceV1, with(r.target())},
		call{http.MethodPost, instanceV3, with(r.plainTarget())})
	return err
}

// registerBy registers an instance by way of the SDK.
func (c *client) registerBy(ctx context.Context, sdk *rollcall.Client, r *registration) (*rollcall.Registration, error) {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	return sdk.Register(ctx, r.service.sdk(r.namespace), r.sdk())
}

// target returns the parameters that name the instance in calls over HTTP.
func (r *registration) target() url.Values {
	q := parameters("namespaceId", r.namespace)
	q.Set("serviceName", r.service.grouped())
	q.Set("groupName", r.service.group)
	q.Set("ip", r.instance.host)
	q.Set("port", r.instance.port)
	q.Set("clusterName", r.cluster)
	q.Set("ephemeral", strconv.FormatBool(!r.persistent))
	return q
}

// plainTarget is target for calls of 3.x, where names have no group in them.
func (r *registration) plainTarget() url.Values {
	q := r.target()
	q.Set("serviceName", r.service.name)
	return q
}

// say tells what was done with an instance.
func (c *client) say(done string, r *registration) error {
	answer := struct {
		Done      string `json:"done"`
		Namespace string `json:"namespace"`
		Group     string `json:"group"`
		Service   string `json:"service"`
		Instance  string `json:"instance"`
		Cluster   string `json:"cluster"`
		Ephemeral bool   `json:"ephemeral"`
	}{done, c.space(), r.service.group, r.service.name, r.instance.String(), r.cluster, !r.persistent}
	return c.show(answer, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s in %s\n", done, r.instance, r.service)
	})
}
