package v1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// FuzzRequest sends whole requests: never a panic, every answer is complete and
// its JSON valid, and so is the list of whatever the request left behind.
func FuzzRequest(f *testing.F) {
	for i, params := range []string{
		"serviceName=a&ip=1.1.1.1&port=1&metadata=k=v&weight=0.5", "serviceName=g@@a&ip=::1&port=-1&clusterName=c",
		"serviceName=a&beat=" + escape(benchBeat), "serviceName=a&clusters=a,b&udpPort=1&clientIP=127.0.0.1&healthyOnly=true",
		"key=public%23%23g@@a", "serviceName=a&consistencyType=ephemeral&metadata=a=1",
		"serviceName=a&instances=" + escape(`[{"ip":"1.1.1.1","port":"1"}]`) + "&metadata=%7B%7D",
		"serviceName=%ff%00&ip=%e4&port=+1&encoding=GBK&weight=NaN", "serviceName=a&ip=1.1.1.1&port=1&ephemeral=false&enabled=no",
	} {
		f.Add(uint8(i), params, "")
		f.Add(uint8(i+3), "serviceName=b", params)
	}
	calls := []string{
		"POST /instance", "PUT /instance", "PATCH /instance", "DELETE /instance", "GET /instance",
		"PUT /instance/beat", "GET /instance/list", "GET /instance/statuses",
		"PUT /instance/metadata/batch", "DELETE /instance/metadata/batch",
	}
	f.Fuzz(func(t *testing.T, call uint8, query, form string) {
		s := newTestAPI(t, httpapitest.Stopped{})
		method, path, _ := strings.Cut(calls[int(call)%len(calls)], " ")
		// An instance for the calls that need one.
		s.replay(t, "POST", "/instance?serviceName=a&ip=1.1.1.1&port=1", "")
		answer := s.replay(t, method, path+"?"+printable(query), form)
		switch answer.status {
		case 200, 400, 500:
		default:
			t.Errorf("%s %s: status %d", method, path, answer.status)
		}
		if strings.Contains(answer.body, "internal error") {
			t.Errorf("%s %s?%q %q: %s", method, path, query, form, answer.body)
		}
		for _, ns := range s.store.ServiceNamespaces() {
			keys, _ := s.store.Services(ns, "", 0, 10)
			for _, key := range keys {
				payload := s.api.Payload(s.store.View(key), key, subscriber("Nacos-Java-Client:v1.4.2", ""))
				if !json.Valid(payload) || !utf8.Valid(payload) {
					t.Errorf("%s %s?%q %q: listed as %q", method, path, query, form, payload)
				}
			}
		}
	})
}

// printable escapes the bytes that end a request line or are refused in it, as
// this package never sees them raw.
func printable(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// replay serves one request without a socket.
func (s *testServer) replay(t *testing.T, method, target, form string) answer {
	t.Helper()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\nUser-Agent: Nacos-Java-Client:v1.4.2\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", method, fullTarget(target), len(form), form)
	got := httpapitest.Replay(s.http, []byte(request), 1)
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
	if err != nil {
		t.Fatalf("%s %q: %v in %q", method, target, err, got)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %q: %v in %q", method, target, err, got)
	}
	if resp.Header.Get("Content-Type") == "application/json" && !json.Valid(bytes.TrimSpace(body)) {
		t.Fatalf("%s %q %q: answered %q", method, target, form, body)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body), resp.Header}
}
