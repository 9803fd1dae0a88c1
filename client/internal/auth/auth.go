// Package auth gives requests what proves who sends them: a token, for which it
// logs in with a name and a password, or a signature. Both protocols of a client
// share one [Provider], which is safe for concurrent use and starts no goroutine.
package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the signature that servers of the protocol check
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Credentials are who the client is: a pair of keys, or a token to send as it is, or a
// name and a password; the first of these that is set counts.
type Credentials struct {
	Username, Password   string
	AccessKey, SecretKey string
	Token                string
}

// Source returns the credentials as they are now; it is asked before each login
// and when a server refused them. It may block until ctx ends.
type Source func(ctx context.Context) (Credentials, error)

// Field is one parameter of an HTTP request or one header of a gRPC payload; the
// names are the same: accessToken, or ak, data and signature.
type Field struct{ Name, Value string }

// The names of fields. Source: the security proxies of Nacos clients.
const (
	fieldToken     = "accessToken"
	fieldKey       = "ak"
	fieldData      = "data"
	fieldSignature = "signature"
)

// Login exchanges a name and a password for a token, which is good for ttl; 0 stands
// for one that does not end.
type Login func(ctx context.Context, username, password string) (token string, ttl time.Duration, err error)

// pause is how long the source is not asked again, nor a login tried, after that failed
// or credentials were refused, so that a wrong password does not become a storm of logins.
const pause = 5 * time.Second

// Provider makes fields.
type Provider struct {
	source Source
	login  Login

	gate chan struct{} // capacity 1: held by the one who asks the source or logs in

	mu      sync.Mutex
	known   bool // credentials have been asked for
	current Credentials
	token   string
	ends    time.Time // of token; zero for never
	renew   time.Time // when to log in again although token is good
	tried   time.Time // when the source was last asked
	refused time.Time // when what it gave was last refused
	failure error     // of the last try
}

// New returns a provider. With a nil source it makes no fields.
func New(source Source, login Login) *Provider {
	return &Provider{source: source, login: login, gate: make(chan struct{}, 1)}
}

// Fields returns what a request about a resource must have; the resource is
// group@@service, or empty for none, and matters to signatures only. It logs in if
// there is no token, and waits for that until ctx ends.
func (p *Provider) Fields(ctx context.Context, resource string) ([]Field, error) {
	if p == nil || p.source == nil {
		return nil, nil
	}
	if fields, good := p.present(resource); good {
		return fields, nil
	}
	select {
	case p.gate <- struct{}{}:
		defer func() { <-p.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fields, good := p.present(resource); good {
		return fields, nil
	}
	if err := p.refresh(ctx); err != nil {
		if fields, usable := p.usable(resource); usable {
			return fields, nil
		}
		return nil, err
	}
	fields, _ := p.usable(resource)
	return fields, nil
}

// Refused says that a server did not accept fields, and reports whether there are or
// may be other ones by now: then the request is worth repeating, once.
func (p *Provider) Refused(fields []Field) bool {
	if p == nil || p.source == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if used := valueOf(fields, fieldToken); used != "" && p.token != "" && used != p.token {
		return true
	}
	if !p.refused.IsZero() && time.Since(p.refused) < pause || p.failure != nil && time.Since(p.tried) < pause {
		return false
	}
	p.refused = time.Now()
	p.known, p.token = false, ""
	return true
}

func valueOf(fields []Field, name string) string {
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return fields[i].Value
	}
	return ""
}

// present returns the fields if nothing is due.
func (p *Provider) present(resource string) (fields []Field, good bool) {
	p.mu.Lock()
	due := !p.renew.IsZero() && !time.Now().Before(p.renew)
	known := p.known
	p.mu.Unlock()
	if !known || due {
		return nil, false
	}
	return p.usable(resource)
}

// usable returns the fields that can be made without asking anybody.
func (p *Provider) usable(resource string) (fields []Field, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c := &p.current; {
	case !p.known:
		return nil, false
	case c.AccessKey != "":
		return sign(c, resource, time.Now()), true
	case c.Token == "" && c.Username == "":
		return nil, true
	case p.token == "" || !p.ends.IsZero() && !time.Now().Before(p.ends):
		return nil, false
	default:
		return []Field{{fieldToken, p.token}}, true
	}
}

// refresh asks the source and logs in, unless that failed a moment ago. The caller
// holds the gate.
func (p *Provider) refresh(ctx context.Context) error {
	p.mu.Lock()
	if p.failure != nil && time.Since(p.tried) < pause {
		defer p.mu.Unlock()
		return p.failure
	}
	p.mu.Unlock()
	c, err := p.source(ctx)
	if err != nil {
		err = fmt.Errorf("credentials: %w", err)
	}
	token, ttl := c.Token, time.Duration(0)
	if err == nil && token == "" && c.AccessKey == "" && c.Username != "" {
		token, ttl, err = p.login(ctx, c.Username, c.Password)
		if err == nil && token == "" {
			err = errors.New("the login was answered without a token")
		}
	}
	if ctx.Err() != nil && err != nil {
		return err // this says nothing about the credentials
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried, p.failure = time.Now(), err
	if err != nil {
		return err
	}
	p.known, p.current, p.token = true, c, token
	p.ends, p.renew = time.Time{}, time.Time{}
	if ttl > 0 {
		p.ends = p.tried.Add(ttl)
		p.renew = p.ends.Add(-ttl/15 - rand.N(ttl/30+1)) // of Nacos clients: a tenth to a fifteenth before the end
	}
	return nil
}

// sign makes the fields of a pair of keys.
func sign(c *Credentials, resource string, now time.Time) []Field {
	data := strconv.FormatInt(now.UnixMilli(), 10)
	if resource != "" {
		data += "@@" + resource
	}
	mac := hmac.New(sha1.New, []byte(c.SecretKey))
	mac.Write([]byte(data))
	return []Field{
		{fieldKey, c.AccessKey},
		{fieldData, data},
		{fieldSignature, base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}
