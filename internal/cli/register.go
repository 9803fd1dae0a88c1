package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// instanceAPI is the instance call of Nacos 1.x, so that the commands which change
// something work with any server that has it.
const instanceAPI = "/nacos/v1/ns/instance"

// registration is an instance as a client of 1.x registers it.
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
		Long: `Register an instance, over the HTTP API of Nacos 1.x.

An ephemeral instance, the usual kind, lives as long as beats come: without them
it is unhealthy after 15 s and gone after 30 s by default. With --beat this command keeps
beating until it is interrupted, and deregisters the instance then. A persistent
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
	beat := flags.Bool("beat", false, "Keep beating until interrupted, then deregister.")
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) (err error) {
		if err := r.read(c, args, *pairs); err != nil {
			return err
		}
		if *beat && r.persistent {
			return &usageError{fmt.Errorf("beat: a persistent instance has no beats; leave out --beat or --persistent")}
		}
		if err := c.register(ctx, &r); err != nil {
			return err
		}
		if err := c.say("registered", &r); err != nil || r.persistent {
			return err
		}
		if *beat {
			return c.keepBeating(ctx, &r)
		}
		if !c.json {
			fmt.Fprintln(c.notes, "without beats it does not last (by default it is unhealthy after 15 s and gone after 30 s); --beat keeps it alive")
		}
		return nil
	})
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

// target returns the parameters that name the instance in every call.
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

func (c *client) register(ctx context.Context, r *registration) error {
	metadata, err := json.Marshal(r.metadata)
	if err != nil {
		return err
	}
	q := r.target()
	q.Set("weight", weight(r.weight))
	q.Set("enabled", strconv.FormatBool(!r.disabled))
	q.Set("healthy", "true")
	q.Set("metadata", string(metadata))
	return c.callInstance(ctx, http.MethodPost, q)
}

// callInstance sends a call of the instance API whose answer tells nothing more.
func (c *client) callInstance(ctx context.Context, method string, query url.Values) error {
	body, err := c.do(ctx, method, instanceAPI, query)
	if err != nil {
		return err
	}
	return body.Close()
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
