package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestHTTPStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Query().Get("status"))
		if err != nil {
			t.Errorf("%v: %v", r.URL, err)
		}
		w.Header().Set("Location", "/?status=200")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}))
	defer s.Close()
	addr := s.Listener.Addr().(*net.TCPAddr)
	for _, test := range []struct {
		status, expected int
		want             Outcome
	}{
		{200, 0, Up},
		{200, 200, Up},
		{204, 204, Up},
		{302, 302, Up},
		{204, 0, Refused},
		{200, 204, Refused},
		{302, 200, Down},
		{503, 200, Down},
		{301, 200, Refused},
		{404, 200, Refused},
		{500, 200, Refused},
	} {
		check := registry.HealthCheck{
			Type: registry.CheckHTTP, Path: "/?status=" + strconv.Itoa(test.status), ExpectedCode: test.expected,
		}
		if got := quick().Probe(t.Context(), at(addr, check)); got.Outcome != test.want {
			t.Errorf("status %d, want %d: got %v %q, want %v", test.status, test.expected, got.Outcome, got.Detail, test.want)
		}
	}
}

func TestHTTPRequest(t *testing.T) {
	type seen struct {
		uri, host, agent, one, two string
		closes                     bool
	}
	requests := make(chan seen, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- seen{
			r.RequestURI, r.Host, r.UserAgent(), r.Header.Get("X-One"), r.Header.Get("X-Two"), r.Close,
		}
	}))
	defer s.Close()
	addr := s.Listener.Addr().(*net.TCPAddr)
	for _, test := range []struct {
		path, headers string
		want          seen
	}{
		{"/ready?deep=1", "", seen{uri: "/ready?deep=1"}},
		{"ready", "", seen{uri: "/ready"}},
		{"", "", seen{uri: "/"}},
		{"/a%2Fb", "", seen{uri: "/a%2Fb"}},
		{"/a b?c=d e", "", seen{uri: "/a%20b?c=d%20e"}},
		{"http://192.0.2.1/x", "", seen{uri: "/x"}},
		{"//192.0.2.1/x", "", seen{uri: "/x"}},
		{"/", "X-One:1|X-Two: http://a:80 ", seen{uri: "/", one: "1", two: "http://a:80"}},
		{"/", "X One:1|X-Two:a\r\nX-One: 1|(x):2", seen{uri: "/"}},
		{"/", "host:example.com|User-Agent:mine||broken|:nokey", seen{uri: "/", host: "example.com", agent: "mine"}},
	} {
		if test.want.host == "" {
			test.want.host = addr.String()
		}
		if test.want.agent == "" {
			test.want.agent = "Rollcall"
		}
		test.want.closes = true
		check := registry.HealthCheck{Type: registry.CheckHTTP, Path: test.path, Headers: test.headers}
		want(t, quick().Probe(t.Context(), at(addr, check)), Up, "")
		if got := <-requests; got != test.want {
			t.Errorf("path %q, headers %q: sent %+v, want %+v", test.path, test.headers, got, test.want)
		}
	}
}

// answering returns a target whose server reads a request and sends text.
func answering(t *testing.T, text string, after func(net.Conn)) Target {
	t.Helper()
	addr := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		after(conn)
	})
	return at(addr, registry.HealthCheck{Type: registry.CheckHTTP})
}

func TestHTTPOddAnswers(t *testing.T) {
	hold := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }
	leave := func(net.Conn) {}
	for _, test := range []struct {
		name, text string
		after      func(net.Conn)
		want       Outcome
		detail     string
	}{
		{"silence", "", hold, Down, "no answer in time"},
		{"half a head", "HTTP/1.1 200 OK\r\nX-A: ", hold, Down, "no answer in time"},
		{"end", "", leave, Down, "EOF"},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n", leave, Down, "malformed"},
		{"a body without end", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx", hold, Up, ""},
		{"interim answers", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", leave, Up, ""},
		{"a head without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Pad: "+strings.Repeat("x", 1000)+"\r\n", 100), hold, Down, ""},
		{"switching protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n", hold, Refused, "status 101"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want(t, quick().Probe(t.Context(), answering(t, test.text, test.after)), test.want, test.detail)
		})
	}
}

func TestHTTPCancelled(t *testing.T) {
	target := answering(t, "", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	want(t, New(Config{Timeout: time.Minute}).Probe(ctx, target), Down, "")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestHTTPBadSettings(t *testing.T) {
	addr := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	want(t, quick().Probe(t.Context(), at(addr, registry.HealthCheck{Type: registry.CheckHTTP, Path: "/%zz"})), Down, "path")
	want(t, quick().Probe(t.Context(), Target{Host: "127.0.0.1", Port: closedPort(t), Check: registry.HealthCheck{Type: registry.CheckHTTP}}), Refused, "")
}

// FuzzRequest: whatever a cluster's settings hold, the request goes to the target,
// and its head has no lines but those it should have.
func FuzzRequest(f *testing.F) {
	f.Add("/ready?x=1", "X-A:1|Host:example.com")
	f.Add("http://evil/", "A: b\r\nInjected: yes")
	f.Add("//evil", "Host: a b\r\nX: y")
	f.Add("?x\ny", "|||")
	f.Fuzz(func(t *testing.T, path, headers string) {
		target := Target{Host: "::1", Port: 80, Check: registry.HealthCheck{Path: path, Headers: headers}}
		req, err := newRequest(&target)
		if err != nil {
			return
		}
		if req.URL.Host != "[::1]:80" || req.URL.Scheme != "http" {
			t.Fatalf("goes to %v", req.URL)
		}
		var text strings.Builder
		if err := req.Write(&text); err != nil {
			return
		}
		back, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text.String())))
		if err != nil {
			t.Fatalf("%v: %q", err, &text)
		}
		if _, err := url.ParseRequestURI(back.RequestURI); err != nil {
			t.Fatal(err)
		}
		if lines, most := strings.Count(text.String(), "\r\n"), 5+strings.Count(headers, "|")+1; lines > most {
			t.Fatalf("%d lines, want at most %d: %q", lines, most, &text)
		}
	})
}

// FuzzAnswer: no answer of a server breaks the check or is read beyond its bound.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204 \r\nContent-Length: -1\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		req, err := newRequest(&Target{Host: "127.0.0.1", Port: 80})
		if err != nil {
			t.Fatal(err)
		}
		conn := &scripted{in: strings.NewReader(string(answer))}
		status, err := exchange(conn, req)
		if err == nil && (status < 101 || status > 999) {
			t.Fatal(fmt.Sprint("status ", status))
		}
	})
}

// scripted is a connection that answers a fixed text.
type scripted struct {
	net.Conn
	in io.Reader
}

func (s *scripted) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *scripted) Write(b []byte) (int, error) { return len(b), nil }
