package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// failOnError fails a test for each error that is logged, such as a panic.
type failOnError struct{ t *testing.T }

func (failOnError) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (h failOnError) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool { h.t.Errorf("%s: %v", r.Message, a); return true })
	return nil
}
func (h failOnError) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h failOnError) WithGroup(string) slog.Handler      { return h }

// FuzzRequest sends arbitrary bytes and checks that the server lives, that all it
// says is HTTP, and that it reads a request which net/http reads too in the same
// way: two readings of the same bytes are how requests are smuggled past proxies.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		beatRequest, listRequest,
		request("POST", "/any?a=%20", "Transfer-Encoding: chunked") + "3\r\na=1\r\n0\r\nX: y\r\n\r\n",
		withBody("POST", "/nacos/any", "a=1", "Expect: 100-continue") + request("HEAD", "/any"),
		"GET /any HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /any",
		"POST /any HTTP/1.1\r\nHost: h\r\ncontent-length: 3\r\nContent-Length: 3\r\n\r\na=1",
		"GET http://h/any?x HTTP/1.1\r\nHost:h\r\nConnection: a,close\r\n\r\n",
		"\r\n\r\nGET / HTTP/1.1\nHost: h\r\n folded\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var target, body string // of the first request that reached the handler
		handler := func(x *httpapi.Exchange) {
			if target == "" {
				target, body = strings.Clone(x.Target()), string(x.Body())
			}
			for name, value := range x.Params().All() {
				_, _ = name, value
			}
			_ = fmt.Sprint(x.Agent(), x.Client(), x.Target(), x.PathValue("p"))
			x.JSON(200, x.Body())
		}
		router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, httpapitest.Groups(), []httpapi.Route{{
			Methods: []string{"GET", "POST", "PUT", "PATCH", "DELETE"}, Path: "/{p}",
			Resource: httpapi.Open, Action: httpapi.Read, Handler: handler,
		}})
		if err != nil {
			t.Fatal(err)
		}
		server, err := httpapi.New(httpapi.DefaultConfig(), router, slog.New(failOnError{t}))
		if err != nil {
			t.Fatal(err)
		}
		checkAnswers(t, httpapitest.Replay(server, raw, 1))
		checkReading(t, raw, target, body)
	})
}

// checkAnswers checks that out is a sequence of answers and interim answers. Those
// to HEAD have no body, so reading ends at the first thing that is no answer
// behind one.
func checkAnswers(t *testing.T, out []byte) {
	r := bufio.NewReader(bytes.NewReader(out))
	for first := true; ; first = false {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			return
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			if first {
				t.Errorf("not an answer: %v in %q", err, out)
			}
			return
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return // an answer to HEAD, the last one
		}
	}
}

// checkReading compares a request that reached a handler with what net/http reads,
// if net/http accepts it and it is the first.
func checkReading(t *testing.T, raw []byte, target, body string) {
	r := bufio.NewReader(strings.NewReader(strings.TrimLeft(string(raw), "\r\n")))
	req, err := http.ReadRequest(r)
	if err != nil || req.RequestURI != target {
		return
	}
	want, err := io.ReadAll(req.Body)
	if err == nil && string(want) != body {
		t.Errorf("the body of %s is %q, net/http reads %q", target, body, want)
	}
}
