package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// login is who the clients of a server are. The token may be read by any goroutine.
type login struct {
	user, password string
	token          atomic.Pointer[string] // nil before the first one
}

// tokenName is that of the token, as a parameter of HTTP and as a header of gRPC
// messages. Source: nacos-client, Constants.ACCESS_TOKEN.
const tokenName = "accessToken"

// current returns the token, nil if there is none. It is for a nil login as well.
func (l *login) current() *string {
	if l == nil {
		return nil
	}
	return l.token.Load()
}

// The times of a token. Source of the first: nacos-client, which renews a token when
// a tenth of its time is left, and asks again after 5 s if that fails.
const (
	renewalShare = 0.9
	renewalRetry = 5 * time.Second
	// untoldLife is how long a token is kept if the server does not say how long it
	// is good.
	untoldLife = 5 * time.Minute
)

// LogIn gets a token for the user of the target and renews it until stop is called,
// which waits for what it started. Without a user it does nothing. Renewing is not
// part of any unit.
func (t *Target) LogIn(ctx context.Context) (stop func(), err error) {
	if t.login == nil {
		return func() {}, nil
	}
	life, err := t.renew(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { t.keepToken(ctx, life) })
	return func() { cancel(); renewing.Wait() }, nil
}

// keepToken renews the token again and again until ctx ends. While that fails, the
// old one is used, and in the end the server refuses it.
func (t *Target) keepToken(ctx context.Context, life time.Duration) {
	wait := renewAfter(life)
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if life, err := t.renew(ctx); err != nil {
			wait = renewalRetry
		} else {
			wait = renewAfter(life)
		}
	}
}

// renewAfter returns how long a token is used that is good for life.
func renewAfter(life time.Duration) time.Duration {
	if life <= 0 {
		life = untoldLife
	}
	return time.Duration(float64(life) * renewalShare)
}

// renew logs in and returns how long the token is good, 0 if the server did not say.
func (t *Target) renew(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	client := t.client()
	var token string
	var life time.Duration
	var err error
	for _, path := range loginPaths() {
		if token, life, err = t.logIn(ctx, client, path); !errors.Is(err, errNoLogin) {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("log in to %s as %s: %w", t.Name, t.login.user, Advised(err))
	}
	t.login.token.Store(&token)
	return life, nil
}

// loginPaths are where servers of 1.2 and later, and of 3.x, take a login.
func loginPaths() []string { return []string{"/nacos/v1/auth/login", "/nacos/v3/auth/user/login"} }

var (
	errNoLogin = errors.New("the server has no login there")
	errNoToken = errors.New("the server gave no token")
)

// maxLogin bounds the answer to a login, in bytes.
const maxLogin = 64 << 10

// loginAnswer is the answer to a login; that of 3.x is in an envelope.
type loginAnswer struct {
	AccessToken string `json:"accessToken"`
	TokenTTL    int64  `json:"tokenTtl"` // seconds
}

func (t *Target) logIn(ctx context.Context, client *http.Client, path string) (string, time.Duration, error) {
	form := url.Values{"username": {t.login.user}, "password": {t.login.password}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base()+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxLogin))
	switch {
	case err != nil:
		return "", 0, err
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone || answer.StatusCode == http.StatusNotImplemented:
		return "", 0, fmt.Errorf("%w: %s: %d", errNoLogin, path, answer.StatusCode)
	case answer.StatusCode != http.StatusOK:
		return "", 0, refused(answer.StatusCode, body)
	}
	var got struct {
		loginAnswer
		Data loginAnswer `json:"data"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return "", 0, fmt.Errorf("%w: %w", errAnswer, err)
	}
	if got.AccessToken == "" {
		got.loginAnswer = got.Data
	}
	if got.AccessToken == "" {
		return "", 0, errNoToken
	}
	return got.AccessToken, time.Duration(got.TokenTTL) * time.Second, nil
}
