package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"

	rollcall "github.com/rollcall-registry/rollcall/client"
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
	return &login{user: user, password: strings.TrimRight(string(password), "\r\n")}, nil
}

// credentials are those of the SDK.
func (l *login) credentials() rollcall.Credentials {
	return rollcall.Credentials{Username: l.user, Password: l.password}
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

// logIn asks for a token, as clients of Nacos since 1.2 do.
func (c *client) logIn(ctx context.Context) (token string, err error) {
	const path = "/nacos/v1/auth/login"
	form := url.Values{"username": {c.login.user}, "password": {c.login.password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := c.exchange(req, path)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if answer.AccessToken == "" {
		return "", fmt.Errorf("%s gave no token", c.base)
	}
	return answer.AccessToken, nil
}
