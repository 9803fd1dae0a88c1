package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

// readyCommand asks whether a server may be sent traffic. Images without a
// shell use it as their health check.
func (a *app) readyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask whether the server may be sent traffic (for container health checks)",
		Args:  cobra.NoArgs,
	}
	return a.clientCommand(cmd, func(ctx context.Context, c *client, _ []string) error {
		_, err := c.either(ctx, "health checks",
			call{http.MethodGet, "/readyz", nil},
			call{http.MethodGet, "/nacos/v1/console/health/readiness", nil},
			call{http.MethodGet, "/nacos/v3/admin/core/state/readiness", nil})
		if err != nil {
			return err
		}
		answer := struct {
			Server string `json:"server"`
			Ready  bool   `json:"ready"`
		}{c.server().String(), true}
		return c.show(answer, func(w io.Writer) { fmt.Fprintf(w, "%s is ready\n", c.server()) })
	})
}
