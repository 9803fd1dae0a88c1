package target

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
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

// reachTime is how long a server may take for its first answer.
const reachTime = 5 * time.Second

// errSilent says that a connection was taken and nothing came.
var errSilent = fmt.Errorf("no answer within %v", reachTime)

// Reach asks the server for a service that there is not, and returns an error if no
// answer comes within 5 s, whatever it is.
func (t *Target) Reach(ctx context.Context, p Protocol) error {
	asking, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	s, err := t.Dial(asking, p)
	if err == nil {
		defer s.Close()
		nothing := &fleet.Fleet{Name: "bench-reach", Group: "DEFAULT_GROUP", Services: 1, Size: 1, Owners: 1}
		_, err = s.Count(nothing.Service(0))
	}
	switch {
	case err == nil || errors.Is(err, errRefused) || errors.Is(err, errDenied) || errors.Is(err, errAnswer):
		return nil
	case asking.Err() != nil && ctx.Err() == nil:
		return errSilent
	default:
		return err
	}
}

// Version asks the server what it is; empty if it does not say, or not to us.
func (t *Target) Version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, min(t.Timeout, reachTime))
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
