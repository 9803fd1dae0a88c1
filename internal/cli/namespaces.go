package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The calls for namespaces: of the console of Nacos 1.x and 2.x, of the server of 3.x,
// and of its console, which has a port of its own and no /nacos.
const (
	namespacesV1      = "/nacos/v1/console/namespaces"
	namespaceAdminV3  = "/nacos/v3/admin/core/namespace"
	namespaceConsole3 = "/v3/console/core/namespace"
)

func (a *app) namespacesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespaces [create|delete ID]",
		Short: "List the namespaces, create or delete one",
		Long: `List the namespaces of a server, create one or delete one, over the HTTP API of
Nacos 1.x or 3.x. Names of services work in any namespace, listed or not.`,
		Example: `  rollcall namespaces
  rollcall namespaces create dev --name Development
  rollcall namespaces delete dev`,
		Args:              namespaceArguments,
		ValidArgsFunction: a.completeNamespaces,
	}
	name := cmd.Flags().String("name", "", "The name to show for a new one, by default its ID.")
	description := cmd.Flags().String("description", "", "What a new one is for.")
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		switch {
		case len(args) == 0:
			return c.listNamespaces(ctx)
		case args[0] == "create":
			return c.createNamespace(ctx, args[1], cmp.Or(*name, args[1]), *description)
		default:
			return c.deleteNamespace(ctx, args[1])
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

// namespaceView is a namespace as JSON.
type namespaceView struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// namespaces returns those that are listed.
func (c *client) namespaces(ctx context.Context) ([]namespaceView, error) {
	answer, err := c.either(ctx, "namespaces",
		call{http.MethodGet, namespacesV1, nil},
		call{http.MethodGet, namespaceAdminV3 + "/list", nil},
		call{http.MethodGet, namespaceConsole3 + "/list", nil})
	if err != nil {
		return nil, err
	}
	type listed struct{ Namespace, NamespaceShowName, NamespaceDesc string }
	var list []listed
	if err := json.Unmarshal(answer, &list); err != nil { // 1.x has them in an object
		var whole struct{ Data []listed }
		if err := json.Unmarshal(answer, &whole); err != nil {
			return nil, c.broken(ctx, err)
		}
		list = whole.Data
	}
	views := []namespaceView{}
	for _, n := range list {
		views = append(views, namespaceView{cmp.Or(n.Namespace, publicNamespace), n.NamespaceShowName, n.NamespaceDesc})
	}
	return views, nil
}

func (c *client) listNamespaces(ctx context.Context) error {
	list, err := c.namespaces(ctx)
	if err != nil {
		return err
	}
	return c.show(list, func(w io.Writer) {
		row(w, "NAMESPACE", "NAME")
		for _, n := range list {
			row(w, n.ID, n.Name)
		}
	})
}

// createNamespace creates a namespace that is not there: servers of 1.x say false then, and
// no more.
func (c *client) createNamespace(ctx context.Context, id, name, description string) error {
	there, err := c.hasNamespace(ctx, id)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("%s has a namespace %s already", c.server(), id)
	}
	parts := func(key string) url.Values {
		return parameters(key, id, "namespaceName", name, "namespaceDesc", description)
	}
	return c.changeNamespaces(ctx, "created", id,
		call{http.MethodPost, namespacesV1, parts("customNamespaceId")},
		call{http.MethodPost, namespaceAdminV3, parts("namespaceId")},
		call{http.MethodPost, namespaceConsole3, parts("customNamespaceId")})
}

// deleteNamespace deletes a namespace that is there: servers say that they deleted any.
func (c *client) deleteNamespace(ctx context.Context, id string) error {
	if id == publicNamespace || id == "" {
		return fmt.Errorf("namespace %s is always there, and cannot be deleted", publicNamespace)
	}
	there, err := c.hasNamespace(ctx, id)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%s has no namespace %s", c.server(), id)
	}
	q := parameters("namespaceId", id)
	return c.changeNamespaces(ctx, "deleted", id,
		call{http.MethodDelete, namespacesV1, q},
		call{http.MethodDelete, namespaceAdminV3, q},
		call{http.MethodDelete, namespaceConsole3, q})
}

func (c *client) hasNamespace(ctx context.Context, id string) (bool, error) {
	list, err := c.namespaces(ctx)
	return slices.ContainsFunc(list, func(n namespaceView) bool { return n.ID == id }), err
}

// changeNamespaces creates or deletes a namespace. The answer is true or false.
func (c *client) changeNamespaces(ctx context.Context, done, id string, calls ...call) error {
	answer, err := c.either(ctx, "namespaces", calls...)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(answer)); text != "true" {
		return fmt.Errorf("%s answered %q: namespace %s was not %s; an ID has letters, digits, - and _", c.server(), text, id, done)
	}
	return c.show(map[string]string{"done": done, "namespace": id}, func(w io.Writer) {
		fmt.Fprintf(w, "%s namespace %s\n", done, id)
	})
}
