package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// call is a request in the words of one generation of Nacos.
type call struct {
	method, path string
	query        url.Values
}

// wrapped reports whether answers come in the envelope of 3.x: code, message, data.
func (k *call) wrapped() bool { return strings.Contains(k.path, "/v3/") }

// either sends the first of several calls for one thing that the server has, the
// oldest generation first: servers of 3.x do not have all that is of 1.x any more, and
// those of before have nothing that is of 3.x. It returns the answer without its
// envelope. what is named when the server has none of the calls.
func (c *client) either(ctx context.Context, what string, calls ...call) ([]byte, error) {
	for _, k := range calls {
		answer, err := c.read(ctx, k.method, k.path, k.query)
		if refused, ok := errors.AsType[*refusedError](err); ok && refused.unknownPath() {
			continue
		}
		if err != nil || !k.wrapped() {
			return answer, err
		}
		return c.unwrapped(&k, answer)
	}
	return nil, fmt.Errorf("%s has no %s, neither as Nacos 1.x has them nor as 3.x has: it is %s", c.server(), what, c.product(ctx))
}

// unwrapped returns the data of an answer of 3.x, which may be a refusal with status 200.
func (c *client) unwrapped(k *call, answer []byte) ([]byte, error) {
	var envelope struct {
		Code int             `json:"code"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.server(), err)
	}
	if envelope.Code != 0 && envelope.Code != http.StatusOK {
		return nil, &refusedError{server: c.server().String(), path: k.path, status: http.StatusOK, text: string(answer)}
	}
	return envelope.Data, nil
}

// product names what the server is, as far as it tells.
func (c *client) product(ctx context.Context) string {
	const unknown = "another kind of server"
	for _, path := range []string{"/nacos/v1/console/server/state", "/nacos/v3/admin/core/state", "/v3/console/server/state"} {
		answer, err := c.read(ctx, http.MethodGet, path, nil)
		if err != nil {
			continue
		}
		var state struct {
			Version string                   `json:"version"`
			Data    struct{ Version string } `json:"data"`
		}
		if json.Unmarshal(answer, &state) != nil {
			continue
		}
		if version := cmp.Or(state.Version, state.Data.Version); version != "" {
			return "Nacos " + version
		}
	}
	return unknown
}

// explained adds to an error that says that the server is no Rollcall what it is
// instead. command is the one that failed.
func (c *client) explained(ctx context.Context, command string, err error) error {
	if !elsewhere(err) || ctx.Err() != nil {
		return err
	}
	product := c.product(ctx)
	if !strings.HasPrefix(product, "Nacos ") {
		return err
	}
	return fmt.Errorf("%s is %s, and `rollcall %s` asks for what Rollcall alone knows", c.server(), product, command)
}
