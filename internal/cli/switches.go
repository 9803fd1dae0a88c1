package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
)

// The calls of Nacos 1.x and 2.x, and of 3.x, for what operators switch while it runs.
const (
	switchesV1 = "/nacos/v1/ns/operator/switches"
	switchesV3 = "/nacos/v3/admin/ns/ops/switches"
)

func (a *app) switchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "switches [NAME [VALUE]]",
		Short: "Show the switches of a server, or set one",
		Long: `Show the switches of a server, one of them, or set one, over the HTTP API of
Nacos 1.x or 3.x. Switches take effect at once; at Rollcall they are kept.`,
		Example: `  rollcall switches
  rollcall switches pushEnabled false`,
		Args:              arguments(0, 2),
		ValidArgsFunction: a.completeSwitches,
	}
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		if len(args) == 2 {
			return c.setSwitch(ctx, args[0], args[1])
		}
		return c.showSwitches(ctx, args)
	})
}

// setSwitch sets a switch and makes sure of it: the call itself succeeds for names that
// the server does not know.
func (c *client) setSwitch(ctx context.Context, name, value string) error {
	if _, err := c.readSwitch(ctx, name); err != nil {
		return err
	}
	q := url.Values{"entry": {name}, "value": {value}}
	_, err := c.either(ctx, "switches", call{http.MethodPut, switchesV1, q}, call{http.MethodPut, switchesV3, q})
	if err != nil {
		return err
	}
	now, err := c.readSwitch(ctx, name)
	if err != nil {
		return err
	}
	if plain(now) != value {
		return fmt.Errorf("%s keeps %s at %s", c.server(), name, plain(now))
	}
	return c.show(map[string]json.RawMessage{name: now}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is %s\n", name, value)
	})
}

// showSwitches shows all switches, or the one that only names.
func (c *client) showSwitches(ctx context.Context, only []string) error {
	all, err := c.readSwitches(ctx)
	if err != nil {
		return err
	}
	if len(only) > 0 {
		value, err := c.switchIn(all, only[0])
		if err != nil {
			return err
		}
		all = map[string]json.RawMessage{only[0]: value}
	}
	return c.show(all, func(w io.Writer) {
		row(w, "SWITCH", "VALUE")
		for _, name := range slices.Sorted(maps.Keys(all)) {
			row(w, name, plain(all[name]))
		}
	})
}

func (c *client) readSwitches(ctx context.Context) (all map[string]json.RawMessage, err error) {
	answer, err := c.either(ctx, "switches", call{http.MethodGet, switchesV1, nil}, call{http.MethodGet, switchesV3, nil})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, c.broken(ctx, err)
	}
	return all, nil
}

func (c *client) readSwitch(ctx context.Context, name string) (json.RawMessage, error) {
	all, err := c.readSwitches(ctx)
	if err != nil {
		return nil, err
	}
	return c.switchIn(all, name)
}

func (c *client) switchIn(all map[string]json.RawMessage, name string) (json.RawMessage, error) {
	value, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("%s has no switch %s", c.server(), name)
	}
	return value, nil
}

// plain shows a value of JSON, a text without its quotes.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
