package httpapitest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// Ask sends one request on an in-memory connection. The target is sent as it is,
// with the context path of the server in front.
func Ask(tb testing.TB, server *httpapi.Server, r WireRequest) WireAnswer {
	tb.Helper()
	var request strings.Builder
	fmt.Fprintf(&request, "%s /nacos%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n", r.Method, r.Target, len(r.Body))
	for n := 0; n+1 < len(r.Headers); n += 2 {
		fmt.Fprintf(&request, "%s: %s\r\n", r.Headers[n], r.Headers[n+1])
	}
	request.WriteString("\r\n" + r.Body)
	raw := Replay(server, []byte(request.String()), 1)
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		tb.Fatalf("%s %q %q: %v in %q", r.Method, r.Target, r.Body, err, raw)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatalf("%s %q %q: %v in %q", r.Method, r.Target, r.Body, err, raw)
	}
	return WireAnswer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}
}

// EscapeTarget escapes the bytes of a target that end a request line or are refused
// in it: handlers never see them raw.
func EscapeTarget(target string) string {
	var b strings.Builder
	for _, c := range []byte(target) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
