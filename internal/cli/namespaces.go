package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// namespaceAPI is the call of the console of Nacos 1.x and 2.x.
const namespaceAPI = "/nacos/v1/console/namespaces"

func (a *app) namespacesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespaces [create|delete ID]",
		Short: "List the namespaces, create or delete one",
		Long: `List the namespaces of a server, create one or delete one, over the HTTP API of
the console of Nacos 1.x. Names of services work in any namespace, listed or not.`,
		Example: `  rollcall namespaces
  rollcall namespaces create dev --name Development
  rollcall namespaces delete dev`,
		Args:      namespaceArguments,
		ValidArgs: []string{"create", "delete"},
	}
	name := cmd.Flags().String("name", "", "The name to show for a new one, by default its ID.")
	description := cmd.Flags().String("description", "", "What a new one is for.")
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		switch {
		case len(args) == 0:
			return c.listNamespaces(ctx)
		case args[0] == "create":
			return c.changeNamespaces(ctx, http.MethodPost, "created", args[1], parameters(
				"customNamespaceId", args[1], "namespaceName", cmp.Or(*name, args[1]), "namespaceDesc", *description))
		default:
			return c.changeNamespaces(ctx, http.MethodDelete, "deleted", args[1], parameters("namespaceId", args[1]))
		}
	})
}

// namespaceArguments has the command take nothing, or what to do with which.
func namespaceArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 2 && (args[0] == "create" || args[0] == "delete") {
		return nil
	}
	return fmt.Errorf("namespaces: these arguments do not fit; write `rollcall %s`", cmd.Use)
}

// namespaceView is a namespace as the console tells it.
type namespaceView struct {
	ID          string `json:"namespace"`
	Name        string `json:"namespaceShowName"`
	Description string `json:"namespaceDesc"`
}

func (c *client) listNamespaces(ctx context.Context) error {
	body, err := c.do(ctx, http.MethodGet, namespaceAPI, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	var answer struct {
		Data []namespaceView `json:"data"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	type shown struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	list := []shown{}
	for _, n := range answer.Data {
		list = append(list, shown{cmp.Or(n.ID, publicNamespace), n.Name, n.Description})
	}
	return c.show(list, func(w io.Writer) {
		row(w, "NAMESPACE", "NAME")
		for _, n := range list {
			row(w, n.ID, n.Name)
		}
	})
}

// changeNamespaces creates or deletes a namespace. The answer is true or false.
func (c *client) changeNamespaces(ctx context.Context, method, done, id string, query url.Values) error {
	body, err := c.do(ctx, method, namespaceAPI, query)
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxErrorText))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if strings.TrimSpace(string(text)) != "true" {
		return fmt.Errorf("%s answered %q: namespace %s was not %s", c.base, text, id, done)
	}
	return c.show(map[string]string{"done": done, "namespace": id}, func(w io.Writer) {
		fmt.Fprintf(w, "%s namespace %s\n", done, id)
	})
}
