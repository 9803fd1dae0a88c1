package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	benchreport "github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// benchCompareCommand compares saved runs.
func (a *app) benchCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare FILE FILE...",
		Short: "Compare saved runs, with ratios to the first and how sure they are",
		Long: `Compare what "rollcall bench --json" or --save has written. Workloads with the same
settings are compared figure by figure, over their samples: a ratio is that of the medians,
with the bounds of their 95 % intervals and the p-value of a Mann-Whitney U test. A ~ stands
where the samples show no difference. A file may hold several servers.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sets []benchreport.Set
			for _, name := range args {
				run, err := readRun(name)
				if err != nil {
					return err
				}
				sets = append(sets, run.Sets(filepath.Base(name))...)
			}
			list, err := benchreport.Compare(sets)
			if err != nil {
				return err
			}
			return benchreport.WriteComparison(cmd.OutOrStdout(), sets, list)
		},
	}
}

func readRun(name string) (*benchreport.Run, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	run, err := benchreport.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return run, nil
}

// benchWorkloadsCommand lists what a scenario may name.
func (a *app) benchWorkloadsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workloads",
		Short: "List the kinds of work that profiles and scenarios consist of",
		Long: `List the kinds of work that profiles and scenarios consist of, each with the settings
that it has where a scenario leaves them out, as a scenario would write them. Those that
are not listed it does not take. Each runs over http and grpc.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := &client{out: cmd.OutOrStdout()}
			return c.table(func(w io.Writer) {
				row(w, "WORKLOAD", "IT DOES", "PROTOCOLS", "DEFAULTS")
				for _, k := range workload.Kinds() {
					row(w, k.Name, k.Summary, "http, grpc", strings.Join(k.Usual(), ", "))
				}
			})
		},
	}
}
