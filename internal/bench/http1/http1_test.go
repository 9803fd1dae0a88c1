package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// serve answers each piece that comes with the next of some answers, and then closes.
func serve(t *testing.T, answers ...string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = nc.Close() }()
		buf := make([]byte, 4096)
		for _, answer := range answers {
			if _, err := nc.Read(buf); err != nil {
				return
			}
			if _, err := io.WriteString(nc, answer); err != nil {
				return
			}
		}
	}()
	return ln.Addr().String()
}

func TestDo(t *testing.T) {
	address := serve(t,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone")
	c, err := Dial(t.Context(), address, 10*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []struct {
		status int
		body   string
	}{{200, "ok"}, {200, "abcde"}, {404, "none"}} {
		status, body, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n"))
		if err != nil || status != want.status || string(body) != want.body {
			t.Fatalf("got %d %q, %v, want %d %q", status, body, err, want.status, want.body)
		}
	}
	if !c.Closed() {
		t.Error("the server said that this was the last answer")
	}
	if _, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a request after the last answer: %v", err)
	}
}

func TestBadAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "no HTTP": "hello\r\n\r\n", "cut off": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
		"too large": "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Dial(t.Context(), serve(t, answer), 10*time.Second, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); err == nil {
				t.Error("it is an answer")
			}
		})
	}
}

// A server may close a connection that was idle; one that was in use a moment ago it
// may not.
func TestStale(t *testing.T) {
	for idle, want := range map[time.Duration]bool{2 * time.Second: true, 0: false} {
		c, err := Dial(t.Context(), serve(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 10*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		c.used = c.used.Add(-idle)
		if _, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); err == nil || errors.Is(err, ErrStale) != want {
			t.Errorf("after %v: got %v", idle, err)
		}
	}
}

// Some servers answer 408 to a connection on which nothing came for a while; that is no
// answer to what is sent then. Source: RFC 9110 15.5.9.
func TestUnaskedTimeout(t *testing.T) {
	const answer = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
	for idle, want := range map[time.Duration]bool{2 * time.Second: true, 0: false} {
		c, err := Dial(t.Context(), serve(t, answer), 10*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.used = c.used.Add(-idle)
		if status, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); errors.Is(err, ErrStale) != want || !want && status != 408 {
			t.Errorf("after %v: got %d, %v", idle, status, err)
		}
	}
}

// A request that is not answered ends with its context.
func TestContextEndsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := Dial(ctx, ln.Addr().String(), time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, _, err := c.Do([]byte("GET / HTTP/1.1\r\n\r\n")); err == nil {
		t.Error("there is an answer")
	}
}
