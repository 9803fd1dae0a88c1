package httpmode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// NewLogin returns how to log in over HTTP, which both protocols do.
func NewLogin(cfg CallerConfig) auth.Login {
	c := newCaller(cfg)
	return func(ctx context.Context, username, password string) (string, time.Duration, error) {
		defer c.close() // logins are rare
		var err error
		for _, path := range []string{"/v1/auth/users/login", "/v3/auth/user/login", "/v1/auth/login"} {
			var a answer
			a, err = c.do(ctx, &request{
				method: http.MethodPost, path: path, bare: true,
				query: url.Values{"username": {username}}, body: url.Values{"password": {password}},
			})
			if err == nil {
				return readLogin(a.body)
			}
			if kind := wire.KindOf(err); kind != wire.NotFound && kind != wire.Unsupported {
				break
			}
		}
		return "", 0, wrongPassword(err)
	}
}

// wrongPassword makes of a refused login an error of the right kind: by version it is
// 401, 403 or 500 with the text of an exception.
func wrongPassword(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok && (e.HTTPStatus == 500 || e.HTTPStatus == 403 || e.HTTPStatus == 400) {
		refused := *e
		refused.Kind = wire.Unauthorized
		return &refused
	}
	return err
}

func readLogin(body []byte) (string, time.Duration, error) {
	var a struct {
		AccessToken string
		TokenTTL    int64 `json:"tokenTtl"` // seconds
		Code        int
		Message     string
		Data        json.RawMessage
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return "", 0, fmt.Errorf("answer to a login: %w", err)
	}
	if a.AccessToken == "" && len(a.Data) > 0 && a.Data[0] == '{' { // the envelope of 3.x
		if err := json.Unmarshal(a.Data, &a); err != nil {
			return "", 0, fmt.Errorf("answer to a login: %w", err)
		}
	}
	if a.AccessToken == "" {
		return "", 0, &wire.Error{Kind: wire.Unauthorized, ErrorCode: a.Code, Message: message([]byte(a.Message)), Err: errors.New("the login was answered without a token")}
	}
	return a.AccessToken, time.Duration(a.TokenTTL) * time.Second, nil
}
