package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// client is one raw connection to a server.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(raw string) {
	c.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		c.t.Fatal(err)
	}
}

// answer is one answer as it came.
type answer struct {
	*http.Response
	body string
}

// receive reads one answer to a request of that method.
func (c *client) receive(method string) answer {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("answer %v: %v", resp.StatusCode, err)
	}
	return answer{resp, string(body)}
}

// ask sends one request and reads its answer.
func (c *client) ask(raw string) answer {
	c.t.Helper()
	c.send(raw)
	method, _, _ := strings.Cut(raw, " ")
	return c.receive(method)
}

// closed fails the test unless the server ends the connection.
func (c *client) closed() {
	c.t.Helper()
	if n, err := io.Copy(io.Discard, c.r); err != nil || n > 0 {
		c.t.Errorf("want the connection closed, got %d bytes and %v", n, err)
	}
}

// request is a request of HTTP/1.1 with further header lines.
func request(method, target string, headers ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(headers, "", ""), "\r\n")
}

// withBody is a request with a body of known length.
func withBody(method, target, body string, headers ...string) string {
	return request(method, target, append(headers, fmt.Sprint("Content-Length: ", len(body)))...) + body
}

func route(method, path string, handler httpapi.Handler) httpapi.Route {
	return httpapi.Route{
		Methods: []string{method}, Path: path, Handler: handler,
		Resource: httpapi.Naming, Action: httpapi.Read,
	}
}

func ok(x *httpapi.Exchange) { x.OK() }

// echo answers the parameters of the request.
func echo(x *httpapi.Exchange) {
	var b strings.Builder
	for name, value := range x.Params().All() {
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	x.Text(200, b.String())
}

func start(t *testing.T, cfg httpapi.Config, routes ...httpapi.Route) (address string) {
	t.Helper()
	return httpapitest.Start(t, httpapitest.Server(t, cfg, httpapi.Hooks{}, routes...))
}
