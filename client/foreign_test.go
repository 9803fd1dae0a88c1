package rollcall

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A dialer that returns nothing at all is a failure to connect.
func TestDialerOfNothing(t *testing.T) {
	for _, p := range []Protocol{GRPC, HTTP} {
		c, err := New(WithServers("127.0.0.1:8848"), WithProtocol(p),
			WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, nil }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := c.Ready(ctx); !errors.Is(err, errNoConn) && !strings.Contains(err.Error(), errNoConn.Error()) {
			t.Errorf("%v: got %v", p, err)
		}
		cancel()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A dialer that breaks does not break the process when the list of servers is asked for.
func TestBrokenDialerOfTheEndpoint(t *testing.T) {
	for _, dial := range []dialer{
		func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		func(context.Context, string, string) (net.Conn, error) { panic("of the user") },
	} {
		c, err := New(WithEndpoint("http://127.0.0.1:1/list"), WithDialer(dial))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := c.Ready(ctx); err == nil {
			t.Error("ready")
		}
		cancel()
		_ = c.Close()
	}
}

// The log says each time that a client is connected again.
func TestLogOfReconnections(t *testing.T) {
	var out bytes.Buffer
	inBubble(t, func(t *testing.T, _ *Client, w *fakeWire) {
		for range 3 {
			w.up()
			w.down(errors.New("gone"))
		}
	}, WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	if n := strings.Count(out.String(), "msg=connected"); n != 3 || strings.Count(out.String(), "msg=disconnected") != 3 {
		t.Errorf("the log says\n%s", &out)
	}
}

// What was asked over HTTP beside a session leaves no connection when the client closes.
func TestCloseLeavesNoIdleConnection(t *testing.T) {
	open := make(chan http.ConnState, 64)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) { open <- s }
	srv.Start()
	defer srv.Close()
	c, err := New(WithServers(srv.Listener.Addr().String()), WithProtocol(GRPC))
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 20*time.Second)
	if _, err := c.Register(ctx, orders, NewInstance("10.0.0.1", 1, Persistent())); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	left := 0
	for begun := false; !begun || left > 0; begun = true {
		select {
		case s := <-open:
			left += int(one(s == http.StateNew) - one(s == http.StateClosed))
		case <-ctx.Done():
			t.Fatalf("%d connections are left", left)
		}
	}
}
