package target

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
)

// Option is a way to reach a server.
type Option func(*Target)

// WithTLS has clients speak TLS: over HTTP, over gRPC or both. A nil configuration is
// clear text.
func WithTLS(http, grpc *tls.Config) Option {
	return func(t *Target) { t.httpTLS, t.grpcTLS = http, grpc }
}

// WithLogin has clients log in; see [Target.LogIn].
func WithLogin(user, password string) Option {
	return func(t *Target) { t.login = &login{user: user, password: password} }
}

// URLs are the addresses with how to speak to them.
func (t *Target) URLs() (http, grpc string) {
	return schemeOf(t.httpTLS) + t.HTTP, schemeOf(t.grpcTLS) + t.GRPC
}

func schemeOf(secure *tls.Config) string {
	if secure != nil {
		return "https://"
	}
	return "http://"
}

// base is what paths of the HTTP API follow.
func (t *Target) base() string { return schemeOf(t.httpTLS) + t.HTTP }

// client is for single requests that are no part of a measurement.
func (t *Target) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: t.httpTLS, DisableKeepAlives: true}}
}

// Version asks the server what it is; empty if it does not say, or not to us.
func (t *Target) Version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base()+"/nacos/v1/console/server/state", nil)
	if err != nil {
		return ""
	}
	answer, err := t.client().Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	var state struct {
		Version string `json:"version"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxLogin)).Decode(&state); err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return state.Version
}
