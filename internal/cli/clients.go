package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// clientFlags are what chooses clients.
type clientFlags struct {
	service, group, sdk, version, protocol string
	limit                                  int
}

func (a *app) clientsCommand() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "clients [ID]",
		Short: "List the clients, or show one with all that it holds",
		Long: `List the clients of all protocols: connections of gRPC, those who register over
HTTP and beat, and those who are sent UDP packets. Each with the library that it is
made with, how many instances it registered and services it subscribed to, when it
was last seen, and how long after a change it acknowledged the newest push.

Without --namespace and --service those of all namespaces are listed. The ID of one
shows what it registered and subscribed to; the exit code is 1 when it is not there.`,
		Example: `  rollcall clients --sdk java --version 1.4
  rollcall clients --service orders --protocol grpc
  rollcall clients '10.0.0.7:8080#true'`,
		Args:              arguments(0, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.service, "service", "", "Only those who registered in, or subscribed to, this service, or group@@service.")
	flags.StringVar(&f.group, "group", "", "Only those with services of this group.")
	flags.StringVar(&f.sdk, "sdk", "", "Only those made with this library: java, go, rollcall-go, python, node, rust, csharp, c, cpp or other.")
	flags.StringVar(&f.version, "version", "", "Only those of this version of it; 2.5 is every 2.5.x.")
	flags.StringVar(&f.protocol, "protocol", "", "Only those who come this way: grpc, http or udp.")
	flags.IntVar(&f.limit, "limit", pageSize, "How many clients to list at most; for one, how many of its instances and of its subscriptions.")
	a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		if f.limit <= 0 {
			return &usageError{fmt.Errorf("limit: %d is no number of clients; write 1 or more", f.limit)}
		}
		if len(args) == 0 {
			return c.listClients(ctx, &f)
		}
		if f.chooses() {
			return &usageError{errors.New("an ID names one client; leave out what chooses several")}
		}
		return c.showClient(ctx, args[0], f.limit)
	})
	a.completeClients(cmd)
	return cmd
}

// completeClients tells the shell what values flags take. The flags are there, so
// there is no error.
func (a *app) completeClients(cmd *cobra.Command) {
	fixed := func(flag string, values ...cobra.Completion) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	fixed("protocol", "grpc", "http", "udp")
	fixed("sdk", "java", "go", "rollcall-go", "python", "node", "rust", "csharp", "c", "cpp", "other")
	_ = cmd.RegisterFlagCompletionFunc("service", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.serviceNames(cmd, typed)
	})
}

func (f *clientFlags) chooses() bool {
	return f.service+f.group+f.sdk+f.version+f.protocol != ""
}

func (c *client) listClients(ctx context.Context, f *clientFlags) error {
	all, err := c.clients(ctx, f)
	if err != nil {
		return err
	}
	return c.show(all, func(w io.Writer) {
		if len(all.Clients) == 0 {
			fmt.Fprintln(w, c.noClients(f))
			return
		}
		row(w, "CLIENT", "PROTOCOL", "SDK", "APP", "REGISTERED", "SUBSCRIBED", "LAST SEEN", "PUSH LAG", "REMARKS")
		for i := range all.Clients {
			v := &all.Clients[i]
			row(w, v.ID, v.Protocol, agent(sdk(v)), v.App, strconv.Itoa(v.Registered), strconv.Itoa(v.Subscribed),
				age(v.SinceSeen), lag(v.Pushes.Lag), clientRemarks(v))
		}
		more(w, all.Total-len(all.Clients))
	})
}

// noClients says that a list is empty.
func (c *client) noClients(f *clientFlags) string {
	if f.chooses() || c.namespace != "" {
		return "there are no such clients"
	}
	return "no clients are connected"
}

// clients returns the clients that flags choose, at most their limit.
func (c *client) clients(ctx context.Context, f *clientFlags) (opsv1.Clients, error) {
	all := opsv1.Clients{Clients: []opsv1.Client{}}
	q := parameters("namespace", c.namespace, "service", f.service, "group", f.group,
		"sdk", f.sdk, "version", f.version, "protocol", f.protocol)
	for offset := 0; offset == 0 || offset < min(all.Total, f.limit); offset += pageSize {
		q.Set("offset", strconv.Itoa(offset))
		q.Set("limit", strconv.Itoa(min(pageSize, f.limit-offset)))
		var page opsv1.Clients
		if err := c.get(ctx, "/clients", q, &page); err != nil {
			return all, err
		}
		all.Clients, all.Total = append(all.Clients, page.Clients...), page.Total
	}
	return all, nil
}

// sdk names the library of a client: what is known of it, or what the client says.
func sdk(v *opsv1.Client) string {
	switch {
	case v.SDK != "":
		return strings.TrimSpace(v.SDK + " " + v.Version)
	case v.Agent != "":
		return v.Agent
	default:
		return "-"
	}
}

// lag shows a time span in milliseconds, 0 for none.
func lag(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return took(ms)
}

// clientRemarks says of a client what is not as usual.
func clientRemarks(v *opsv1.Client) string {
	var words []string
	if v.Recalled {
		words = append(words, "not back since the restart")
	}
	if v.Module != "" && v.Module != "naming" {
		words = append(words, "module "+v.Module)
	}
	if p := &v.Pushes; p.Refused != "" {
		words = append(words, "not pushed to: "+p.Refused)
	}
	if waiting := unacknowledged(&v.Pushes); waiting != "" {
		words = append(words, waiting)
	}
	if n := v.Pushes.Failed; n > 0 {
		words = append(words, fmt.Sprintf("%d not told the newest", n))
	}
	return strings.Join(words, ", ")
}

// unacknowledged says what a client has not acknowledged, "" when that is nothing.
func unacknowledged(p *opsv1.ClientPushes) string {
	if p.Unacknowledged == 0 {
		return ""
	}
	text := fmt.Sprintf("%d unacknowledged", p.Unacknowledged)
	if p.WaitingFor > 0 {
		text += " for " + took(p.WaitingFor)
	}
	return text
}

func (c *client) showClient(ctx context.Context, id string, limit int) error {
	var v opsv1.Client
	q := parameters("limit", strconv.Itoa(min(limit, maxParts)))
	if err := c.get(ctx, "/clients/"+url.PathEscape(id), q, &v); err != nil {
		return err
	}
	return c.show(v, func(w io.Writer) {
		facts(w, &v)
		registered(w, &v)
		subscribed(w, &v)
	})
}

// maxParts is how many instances and subscriptions of a client are asked for at
// most.
const maxParts = 10_000

// facts are what is known of a client besides what it holds.
func facts(w io.Writer, v *opsv1.Client) {
	fact := func(name, value string) {
		if value != "" {
			row(w, name, value)
		}
	}
	fact("client", v.ID)
	fact("protocol", v.Protocol)
	fact("sdk", sdk(v))
	if v.SDK != "" {
		fact("agent", v.Agent)
	}
	fact("address", v.Address)
	fact("own address", v.IP)
	fact("app", v.App)
	fact("module", v.Module)
	fact("namespace", v.Namespace)
	if v.Since > 0 {
		fact("since", stamp(v.Since))
	}
	fact("last seen", age(v.SinceSeen))
	fact("push lag", lag(v.Pushes.Lag))
	fact("remarks", clientRemarks(v))
}

func registered(w io.Writer, v *opsv1.Client) {
	if v.Registered == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "REGISTERED", "CLUSTER", "NAMESPACE", "SERVICE")
	for _, i := range v.Instances {
		row(w, hostPort(i.IP, i.Port), i.Cluster, i.Namespace, nameOf(i.Service))
	}
	more(w, v.Registered-len(v.Instances))
}

func subscribed(w io.Writer, v *opsv1.Client) {
	if v.Subscribed == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "SUBSCRIBED", "NAMESPACE", "CLUSTERS", "ACKNOWLEDGED", "PUSH LAG", "REMARKS")
	for i := range v.Subscriptions {
		s := &v.Subscriptions[i]
		at := "-"
		if s.At > 0 {
			at = stamp(s.At)
		}
		row(w, nameOf(s.Service), s.Namespace, s.Clusters, at, lag(s.Lag), subscriptionRemarks(s))
	}
	more(w, v.Subscribed-len(v.Subscriptions))
}

func subscriptionRemarks(s *opsv1.ClientSubscription) string {
	switch {
	case s.Refused != "":
		return "not pushed to: " + s.Refused
	case s.Waiting && s.WaitingFor > 0:
		return "unacknowledged for " + took(s.WaitingFor)
	case s.Waiting:
		return "unacknowledged"
	case s.Failed > s.Acknowledged:
		return s.Problem
	default:
		return ""
	}
}

func more(w io.Writer, n int) {
	if n > 0 {
		fmt.Fprintf(w, "and %d more\n", n)
	}
}
