package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

func (a *app) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why SERVICE [IP[:PORT]]",
		Short: "Explain why an instance is there, or is not",
		Long: `Explain what a look-up of a service makes of each of its instances and by which
rule; of one instance, why it is there or who removed it and when; and which
subscriber has learned of that. The exit code is 1 when the service, or the
instance that is asked about, is not there.`,
		Example: `  rollcall why orders
  rollcall why orders 10.0.0.7:8080 --healthy-only
  rollcall why billing@@orders '[2001:db8::7]:8080' --clusters east`,
		Args:              arguments(1, 2),
		ValidArgsFunction: a.completeInstance,
	}
	flags := cmd.Flags()
	clusters := flags.StringSlice("clusters", nil, "The look-up asks for these clusters alone.")
	healthyOnly := flags.Bool("healthy-only", false, "The look-up asks for healthy instances alone.")
	api := flags.String("api", "v1", "The look-up comes through this API: v1, v2, v3 or grpc. They judge differently.")
	a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		s, err := parseService(args[0])
		if err != nil {
			return err
		}
		q := parameters("namespace", c.namespace, "group", s.group, "service", s.name,
			"clusters", strings.Join(*clusters, ","), "healthyOnly", strconv.FormatBool(*healthyOnly), "api", *api)
		if len(args) == 2 {
			e, err := parseAddress(args[1])
			if err != nil {
				return err
			}
			q.Set("ip", e.host)
			q.Set("port", e.port)
		}
		return c.why(ctx, q)
	})
	_ = cmd.RegisterFlagCompletionFunc("api", // the flag is there, so there is no error
		cobra.FixedCompletions([]cobra.Completion{"v1", "v2", "v3", "grpc"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *client) why(ctx context.Context, q map[string][]string) error {
	var e opsv1.Explanation
	if err := c.get(ctx, "/explain", q, &e); err != nil {
		return err
	}
	err := c.show(e, func(w io.Writer) {
		fmt.Fprintln(w, strings.ReplaceAll(printable(e.Summary), ". ", ".\n"))
		candidates(w, &e)
		learners(w, &e)
		past(w, &e)
	})
	aboutOne := q["ip"] != nil
	if err == nil && (!e.Exists || aboutOne && len(e.Candidates) == 0) {
		return errSaid
	}
	return err
}

func candidates(w io.Writer, e *opsv1.Explanation) {
	if len(e.Candidates) == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "INSTANCE", "CLUSTER", "HEALTH", "WEIGHT", "KIND", "LAST BEAT", "OWNER", "LOOK-UP", "REMARKS")
	for i := range e.Candidates {
		c := &e.Candidates[i]
		instanceRow(w, &c.InstanceState, c.Verdict, remarks(&c.InstanceState))
	}
	if e.Omitted > 0 {
		fmt.Fprintf(w, "and %d more\n", e.Omitted)
	}
}

func learners(w io.Writer, e *opsv1.Explanation) {
	if len(e.Subscribers) == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "SUBSCRIBER", "AGENT", "CLUSTERS", "THE CHANGE", "AT", "REMARKS")
	for i := range e.Subscribers {
		s := &e.Subscribers[i]
		at, remarks := "", s.Learned.Problem
		if s.Learned.Time > 0 {
			at = stamp(s.Learned.Time)
		}
		if s.Learned.Took > 0 {
			remarks = took(s.Learned.Took) + " after it"
		}
		if s.Gone {
			remarks = strings.TrimPrefix(remarks+", subscribes no longer", ", ")
		}
		row(w, s.Protocol+" "+s.Address, agent(s.Agent), s.Clusters, string(s.Learned.State), at, remarks)
	}
}

func past(w io.Writer, e *opsv1.Explanation) {
	if len(e.History) == 0 {
		return
	}
	fmt.Fprintln(w)
	entryHeading(w, false)
	for i := range e.History {
		v := &e.History[len(e.History)-1-i]
		(&entry{time: v.Time, event: v}).row(w, false)
	}
}
