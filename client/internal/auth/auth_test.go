package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func fixed(c Credentials) Source {
	return func(context.Context) (Credentials, error) { return c, nil }
}

// logins counts logins and hands out numbered tokens.
type logins struct {
	n   atomic.Int32
	ttl time.Duration
	err atomic.Pointer[error]
}

func (l *logins) login(context.Context, string, string) (string, time.Duration, error) {
	n := l.n.Add(1)
	if err := l.err.Load(); err != nil {
		return "", 0, *err
	}
	return fmt.Sprintf("token-%d", n), l.ttl, nil
}

func (l *logins) fail(err error) {
	if err == nil {
		l.err.Store(nil)
		return
	}
	l.err.Store(&err)
}

func token(t *testing.T, p *Provider) string {
	t.Helper()
	fields, err := p.Fields(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return valueOf(fields, fieldToken)
}

func TestNoCredentials(t *testing.T) {
	for _, p := range []*Provider{nil, New(nil, nil), New(fixed(Credentials{}), nil)} {
		if fields, err := p.Fields(t.Context(), "x"); err != nil || fields != nil {
			t.Errorf("got %v, %v", fields, err)
		}
	}
	if New(nil, nil).Refused(nil) {
		t.Error("there is nothing else to try")
	}
}

func TestSignature(t *testing.T) {
	c := Credentials{AccessKey: "ak", SecretKey: "sk"}
	got := sign(&c, "G@@s", time.UnixMilli(1700000000000))
	// echo -n '1700000000000@@G@@s' | openssl dgst -sha1 -hmac sk -binary | base64
	want := []Field{{"ak", "ak"}, {"data", "1700000000000@@G@@s"}, {"signature", "dVlG1QfdqnLPdA0CV/I6zTxycws="}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	if data := sign(&c, "", time.UnixMilli(7))[1].Value; data != "7" {
		t.Errorf("without a resource the data is %q", data)
	}
}

// Of several kinds of credentials one counts.
func TestWhichCredentialsCount(t *testing.T) {
	all := Credentials{AccessKey: "ak", SecretKey: "sk", Token: "fixed", Username: "u", Password: "p"}
	for _, tt := range []struct {
		leave func(*Credentials)
		want  Field
	}{
		{func(*Credentials) {}, Field{fieldKey, "ak"}},
		{func(c *Credentials) { c.AccessKey = "" }, Field{fieldToken, "fixed"}},
		{func(c *Credentials) { c.AccessKey, c.Token = "", "" }, Field{fieldToken, "token-1"}},
	} {
		var l logins
		c := all
		tt.leave(&c)
		fields, err := New(fixed(c), l.login).Fields(t.Context(), "")
		if err != nil || len(fields) == 0 || fields[0] != tt.want {
			t.Errorf("got %v, %v, want %v first", fields, err, tt.want)
		}
	}
}

func TestOneLoginForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logins
		p := New(fixed(Credentials{Username: "u"}), func(ctx context.Context, u, pw string) (string, time.Duration, error) {
			time.Sleep(time.Second)
			return l.login(ctx, u, pw)
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { token(t, p) })
		}
		wg.Wait()
		if n := l.n.Load(); n != 1 {
			t.Errorf("%d logins, want 1", n)
		}
	})
}

func TestRenewalBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logins{ttl: 150 * time.Second}
		p := New(fixed(Credentials{Username: "u"}), l.login)
		if got := token(t, p); got != "token-1" {
			t.Errorf("got %s", got)
		}
		time.Sleep(134 * time.Second)
		if got := token(t, p); got != "token-1" {
			t.Errorf("got %s before it was due", got)
		}
		time.Sleep(7 * time.Second)
		l.fail(errors.New("down"))
		if got := token(t, p); got != "token-1" {
			t.Errorf("got %s; the old token is good while no new one is to be had", got)
		}
		time.Sleep(pause)
		l.fail(nil)
		if got := token(t, p); got != "token-3" {
			t.Errorf("got %s after the renewal", got)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logins
		password := atomic.Pointer[string]{}
		password.Store(new("old"))
		p := New(func(context.Context) (Credentials, error) {
			return Credentials{Username: "u", Password: *password.Load()}, nil
		}, func(ctx context.Context, u, pw string) (string, time.Duration, error) {
			if tok, ttl, err := l.login(ctx, u, pw); pw == "new" || l.n.Load() == 1 {
				return tok, ttl, err
			}
			return "", 0, errors.New("wrong")
		})
		first, _ := p.Fields(t.Context(), "")
		time.Sleep(time.Minute)
		if !p.Refused(first) {
			t.Fatal("the token may have been revoked")
		}
		for range 20 {
			if _, err := p.Fields(t.Context(), ""); err == nil {
				t.Fatal("the password is wrong by now")
			}
		}
		if n := l.n.Load(); n != 2 {
			t.Errorf("%d logins, want one more", n)
		}
		password.Store(new("new")) // the key is rotated
		time.Sleep(pause)
		if got := token(t, p); got != "token-3" {
			t.Errorf("got %s", got)
		}
		if !p.Refused(first) {
			t.Error("there is another token by now")
		}
	})
}

func TestCancelledLoginBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(fixed(Credentials{Username: "u"}), func(ctx context.Context, _, _ string) (string, time.Duration, error) {
			select {
			case <-ctx.Done():
				return "", 0, ctx.Err()
			case <-time.After(time.Second):
				return "good", 0, nil
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.Fields(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := token(t, p); got != "good" {
			t.Errorf("got %q", got)
		}
	})
}

// What is refused right after it was asked for is asked for once again, and not at each
// further refusal.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := New(func(context.Context) (Credentials, error) {
			asked++
			return Credentials{Token: fmt.Sprint("token-", asked)}, nil
		}, nil)
		fields := func() []Field {
			f, err := p.Fields(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if !p.Refused(fields()) {
			t.Error("not asked again")
		}
		for range 20 {
			if p.Refused(fields()) {
				t.Error("asked again and again")
			}
		}
		time.Sleep(pause)
		if !p.Refused(fields()) {
			t.Error("not asked after a while")
		}
		if fields(); asked != 3 {
			t.Errorf("asked %d times, want 3", asked)
		}
	})
}
