package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// login is who a command is.
type login struct {
	user, password string
	token          string // once logged in over the HTTP API
}

// login returns who the settings say; nil for nobody.
func (s *clientSettings) login() (*login, error) {
	user, file := s.get(flagUser), s.get(flagPassword)
	switch {
	case user == "" && file == "":
		return nil, nil //nolint:nilnil // nobody is not an error
	case user == "" || file == "":
		return nil, fmt.Errorf("%s and %s: give both or none", flagUser, flagPassword)
	}
	password, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagPassword, err)
	}
	text := strings.TrimRight(string(password), "\r\n")
	if text == "" {
		return nil, fmt.Errorf("%s: %s is empty", flagPassword, file)
	}
	return &login{user: user, password: text}, nil
}

// signed returns a query with the token of the login, if there is one.
func (c *client) signed(ctx context.Context, query url.Values) (url.Values, error) {
	if c.login == nil {
		return query, nil
	}
	if c.login.token == "" {
		token, err := c.logIn(ctx)
		if err != nil {
			return nil, fmt.Errorf("log in as %s: %w", c.login.user, err)
		}
		c.login.token = token
	}
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("accessToken", c.login.token)
	return query, nil
}

// loginPaths are where clients of the generations log in.
var loginPaths = []string{"/nacos/v1/auth/users/login", "/nacos/v3/auth/user/login", "/nacos/v1/auth/login"}

// logIn asks for a token.
func (c *client) logIn(ctx context.Context) (token string, err error) {
	var body io.ReadCloser
	for _, path := range loginPaths {
		body, err = c.first(ctx, func(server *url.URL) (io.ReadCloser, error) { return c.sendLogin(ctx, server, path) })
		if refused, ok := errors.AsType[*refusedError](err); !ok || !refused.unknownPath() {
			break
		}
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return "", c.broken(ctx, err)
	}
	if answer.AccessToken == "" {
		return "", fmt.Errorf("%s gave no token", c.server())
	}
	return answer.AccessToken, nil
}

// sendLogin sends the password in the body, which nobody logs.
func (c *client) sendLogin(ctx context.Context, server *url.URL, path string) (io.ReadCloser, error) {
	form := url.Values{"username": {c.login.user}, "password": {c.login.password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.exchange(server, req, path)
}
