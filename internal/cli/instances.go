package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func (a *app) instancesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "instances SERVICE",
		Short: "List the instances of a service as clients see them, of any server",
		Long: `List the instances of a service as clients see them, of Rollcall or of a Nacos
server. Who keeps them alive, and since when, is in ` + "`rollcall list`" + `.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completeService,
	}
	shown := addInstanceFlags(cmd)
	return a.sdkCommand(cmd, "http", func(ctx context.Context, c *client, args []string) error {
		s, err := parseService(args[0])
		if err != nil {
			return err
		}
		return c.withSDK(ctx, func(sdk *rollcall.Client) error { return c.showInstances(ctx, sdk, s, shown()) })
	})
}

// addInstanceFlags adds the flags that narrow which instances are shown, and returns
// what reads them.
func addInstanceFlags(cmd *cobra.Command) func() []rollcall.FilterOption {
	clusters := cmd.Flags().StringSlice("cluster", nil, "Those of these clusters alone.")
	healthy := cmd.Flags().Bool("healthy", false, "The healthy ones alone.")
	return func() (filters []rollcall.FilterOption) {
		if len(*clusters) > 0 {
			filters = append(filters, rollcall.WithClusters(*clusters...))
		}
		if *healthy {
			filters = append(filters, rollcall.WithHealth(rollcall.OnlyHealthy))
		}
		return filters
	}
}

// instanceView is an instance as JSON.
type instanceView struct {
	IP        string            `json:"ip"`
	Port      uint16            `json:"port"`
	Cluster   string            `json:"cluster"`
	Weight    float64           `json:"weight"`
	Healthy   bool              `json:"healthy"`
	Enabled   bool              `json:"enabled"`
	Ephemeral bool              `json:"ephemeral"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

func viewOf(in *rollcall.Instance) instanceView {
	return instanceView{in.IP, in.Port, in.Cluster, in.Weight, in.Healthy, in.Enabled, in.Ephemeral, in.Metadata}
}

// instancesView is what instances prints as JSON.
type instancesView struct {
	Namespace string         `json:"namespace"`
	Group     string         `json:"group"`
	Service   string         `json:"service"`
	Protected bool           `json:"protected"`
	Instances []instanceView `json:"instances"`
}

func (c *client) showInstances(ctx context.Context, sdk *rollcall.Client, s serviceName, filters []rollcall.FilterOption) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	var options []rollcall.QueryOption
	for _, f := range filters {
		options = append(options, f)
	}
	found, err := sdk.Lookup(ctx, s.sdk(c.namespace), options...)
	if err != nil {
		return err
	}
	view := instancesView{c.space(), s.group, s.name, found.Protected(), viewsOf(slices.Collect(found.All()))}
	return c.show(view, func(w io.Writer) {
		if found.Len() == 0 {
			fmt.Fprintf(w, "%s has no instances\n", s)
			return
		}
		row(w, "INSTANCE", "CLUSTER", "HEALTH", "WEIGHT", "KIND", "REMARKS", "METADATA")
		for in := range found.All() {
			row(w, seenInstance(in, found.Protected())...)
		}
	})
}

// The places of the cells of [seenInstance], of which the first is the address.
const (
	clusterCell = iota + 1
	healthCell
	weightCell
	kindCell
	remarkCell
	metadataCell
)

// seenInstance returns the cells of an instance as clients see it.
func seenInstance(in *rollcall.Instance, protected bool) []string {
	var remarks []string
	if !in.Enabled {
		remarks = append(remarks, "disabled")
	}
	if protected {
		remarks = append(remarks, "health unknown: the protect threshold is reached")
	}
	return []string{
		hostPort(in.IP, int32(in.Port)), in.Cluster, health(in.Healthy), weight(in.Weight), kind(in.Ephemeral),
		strings.Join(remarks, ", "), pairs(in.Metadata),
	}
}

// pairs writes metadata in order.
func pairs(metadata map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		list = append(list, key+"="+metadata[key])
	}
	return strings.Join(list, " ")
}
