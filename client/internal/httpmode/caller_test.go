package httpmode

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

func TestEachServerOnceARound(t *testing.T) {
	all := []string{"10.0.0.1:8848", "10.0.0.2:8848", "10.0.0.3:8848"}
	inWorld(t, all, nil, func(t *testing.T, w *world) {
		for _, at := range all {
			w.net.Set(at, faulttest.Refused)
		}
		before := 0
		for _, at := range all {
			before += w.net.Dials(at)
		}
		_, err := w.caller.do(t.Context(), &request{method: "GET", path: "/v1/ns/operator/metrics"})
		e, ok := errors.AsType[*wire.Error](err)
		if !ok || e.Kind != wire.NotConnected || e.Attempts != 3 {
			t.Errorf("got %v, %d attempts", err, e.Attempts)
		}
		after := 0
		for _, at := range all {
			after += w.net.Dials(at)
		}
		if after-before != 3 {
			t.Errorf("%d dials, want 3", after-before)
		}
		w.net.Set(all[1], faulttest.Healthy)
		for range 5 {
			if a, err := w.caller.do(t.Context(), &request{method: "GET", path: "/v1/ns/operator/metrics"}); err != nil || a.server.HTTP() != all[1] {
				t.Errorf("answered by %v, %v", a.server, err)
			}
		}
		if n := w.net.Dials(all[0]) + w.net.Dials(all[2]); n > after+2 {
			t.Errorf("the one that answers is not preferred: %d dials of others", n)
		}
	})
}

func TestTimeIsBounded(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		w.net.Set(first, faulttest.BlackHole)
		began := time.Now()
		_, err := w.Query(t.Context(), orders)
		if d := time.Since(began); wire.KindOf(err) != wire.NotConnected || d != 3*time.Second {
			t.Errorf("%v after %v, want 3 s", err, d)
		}
		if !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), "3s") {
			t.Errorf("says %v; want the server and the time", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = w.Query(ctx, orders)
		if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || d != 50*time.Millisecond {
			t.Errorf("%v after %v, want 50 ms", err, d)
		}
	})
}

func TestSlowServers(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		w.net.Slow(first, 2900*time.Millisecond)
		if _, err := w.Query(t.Context(), orders); err != nil {
			t.Errorf("2.9 s is in time: %v", err)
		}
		w.net.Slow(first, 10*time.Second)
		if _, err := w.Query(t.Context(), orders); wire.KindOf(err) != wire.NotConnected {
			t.Errorf("got %v", err)
		}
	})
}

func TestKindsOfAnswers(t *testing.T) {
	tests := []struct {
		status int
		text   string
		want   wire.Kind
	}{
		{400, "Param 'serviceName' is required.", wire.Invalid},
		{401, "", wire.Unauthorized},
		{403, "unknown user!", wire.Unauthorized},
		{403, "<html>token expired!", wire.Unauthorized},
		{403, "authorization failed!", wire.Forbidden},
		{404, "dom not found", wire.NotFound},
		{409, "", wire.Conflict},
		{410, "", wire.Unsupported},
		{429, "", wire.Overloaded},
		{500, "caused: x", wire.Unknown},
		{501, "no such api", wire.Unsupported},
		{502, "", wire.Overloaded},
		{503, "server is STARTING now", wire.NotReady},
		{503, "busy", wire.Overloaded},
	}
	for _, test := range tests {
		if got := kindOf(test.status, test.text); got != test.want {
			t.Errorf("%d %s: kind %d, want %d", test.status, test.text, got, test.want)
		}
	}
}

func user(password string) auth.Source {
	return func(context.Context) (auth.Credentials, error) {
		return auth.Credentials{Username: "nacos", Password: password}, nil
	}
}

func TestLogin(t *testing.T) {
	inWorld(t, []string{first}, user("%+&$# é"), func(t *testing.T, w *world) {
		f := w.fakes[first]
		f.set(func(f *fake) { f.token = "one&two" })
		if _, err := w.Query(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		f.set(func(f *fake) { f.token = "three" }) // the key was rotated
		if _, err := w.Query(t.Context(), orders); err != nil {
			t.Fatalf("after the rotation: %v", err)
		}
		logins := f.of("POST /v1/auth/users/login")
		if len(logins) != 2 {
			t.Errorf("%d logins, want 2", len(logins))
		}
	})
}

func TestWrongPassword(t *testing.T) {
	inWorld(t, []string{first}, user("wrong"), func(t *testing.T, w *world) {
		f := w.fakes[first]
		f.set(func(f *fake) { f.token = "x" })
		for range 100 {
			_, err := w.Query(t.Context(), orders)
			if wire.KindOf(err) != wire.Unauthorized {
				t.Fatalf("got %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(f.of("POST /v1/auth/users/login")); n > 3 {
			t.Errorf("%d logins in 10 s, want one each 5 s", n)
		}
		if _, err := w.Query(t.Context(), orders); strings.Contains(err.Error(), "wrong") {
			t.Errorf("the password is in %v", err)
		}
	})
}

func TestForbidden(t *testing.T) {
	inWorld(t, []string{first}, user("%+&$# é"), func(t *testing.T, w *world) {
		f := w.fakes[first]
		f.set(func(f *fake) {
			f.token = "good"
			f.handle = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/list") {
					return false
				}
				http.Error(w, "authorization failed!", http.StatusForbidden)
				return true
			}
		})
		for range 10 {
			if _, err := w.Query(t.Context(), orders); wire.KindOf(err) != wire.Forbidden {
				t.Fatalf("got %v", err)
			}
		}
		if n := len(f.of("POST /v1/auth/users/login")); n > 2 { // once again, in case the credentials are other ones by now
			t.Errorf("%d logins, want 2", n)
		}
	})
}

func TestLongParametersGoIntoTheBody(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		i := instance(1)
		i.Metadata = map[string]string{"long": strings.Repeat("x", 20000)}
		var query atomic.Int64
		w.fakes[first].set(func(f *fake) {
			f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
				query.Store(int64(len(r.URL.RawQuery)))
				return false
			}
		})
		publish(t, w, i)
		if got := w.fakes[first].of("POST /v1/ns/instance"); len(got) != 1 || len(got[0].form["metadata"]) < 20000 || query.Load() != 0 {
			t.Errorf("the query has %d bytes", query.Load())
		}
	})
}

func TestLoginAnswers(t *testing.T) {
	tests := []struct {
		body  string
		token string
		ttl   time.Duration
	}{
		{`{"accessToken":"a","tokenTtl":18000,"globalAdmin":true}`, "a", 5 * time.Hour},
		{`{"code":0,"message":"success","data":{"accessToken":"a","tokenTtl":5}}`, "a", 5 * time.Second},
		{`{"accessToken":"a"}`, "a", 0},
		{`{"code":401,"message":"Login failed","data":null}`, "", 0},
		{`{"code":200,"message":null,"data":"Bearer x"}`, "", 0},
		{`Bearer x`, "", 0},
		{`{}`, "", 0},
	}
	for _, test := range tests {
		token, ttl, err := readLogin([]byte(test.body))
		if token != test.token || ttl != test.ttl || (err == nil) != (test.token != "") {
			t.Errorf("%s: %q, %v, %v", test.body, token, ttl, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`, `{"count":1,"doms":["a"]}`,
		`{"code":0,"data":[{"ip":"a","port":1}]}`, `{"doms":{"public":["a"]}}`, `{"accessToken":"x","tokenTtl":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range []dialect{v1{}, legacy{}, v3{}} {
			_, _ = d.readBeat(body)
			if raw, err := d.readList(body); err == nil {
				pollInterval(raw, true)
			}
			if names, _, err := d.readServices(body, "public", ungrouped, 1, 10); err == nil && len(names) > 1<<20 {
				t.Fatal("too many names")
			}
		}
		_, _, _ = readLogin(body)
	})
}
