package golden

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// callTimeout bounds one request. The original holds some for 30 s.
	callTimeout = 40 * time.Second
	// maxBody bounds an answer.
	maxBody = 64 << 20
)

// call sends the request of s on a connection of its own and returns the answer
// with fresh names put back to their placeholders. It writes the request itself,
// because the paths of some cases are none that package net/http would send. No
// answer is an answer too: status 0.
func (s *Step) call(ctx context.Context, address string, n names) Answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, body, err := s.exchange(ctx, address, n)
	if err != nil {
		return Answer{Body: fmt.Sprintf("no answer: %v", err)}
	}
	// The conversion turns bytes that are no UTF-8 into the replacement character.
	text := n.unfill.Replace(string([]rune(string(body))))
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if value, err := decodeJSON([]byte(trimmed)); err == nil {
			answer.JSON = jsonValue{value, true}
			return answer
		}
	}
	answer.Body = text
	return answer
}

// exchange returns the status and the type of the answer, and its body.
func (s *Step) exchange(ctx context.Context, address string, n names) (head Answer, body []byte, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return head, nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	if _, err := io.WriteString(conn, s.request(address, n)); err != nil {
		return head, nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: s.Method})
	if err != nil {
		return head, nil, err
	}
	defer resp.Body.Close()
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	head = Answer{Status: resp.StatusCode, Type: strings.ToLower(strings.TrimSpace(mediaType))}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return head, body, err
}

// request is the request of s as it goes over the wire.
func (s *Step) request(address string, n names) string {
	target := n.fill.Replace(s.Path)
	if query := s.Query.encode(n); query != "" {
		target += "?" + query
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", s.Method, target)
	header := func(name, value string) {
		if !s.Headers.has(name) {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	header("Host", address)
	header("Accept-Encoding", "identity")
	body, hasBody := s.body(n)
	if hasBody {
		header("Content-Length", strconv.Itoa(len(body)))
	}
	if s.Form != nil {
		header("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range s.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.name, n.fill.Replace(h.value))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// body is the body of the request, and whether its length is announced.
func (s *Step) body(n names) (string, bool) {
	switch {
	case s.Form != nil:
		return s.Form.encode(n), true
	case s.Body != nil:
		return n.fill.Replace(*s.Body), true
	default:
		return "", s.Method == http.MethodPost || s.Method == http.MethodPut || s.Method == http.MethodPatch
	}
}

func (h headers) has(name string) bool {
	return slices.ContainsFunc(h, func(one param) bool { return strings.EqualFold(one.name, name) })
}

func (p params) encode(n names) string {
	pairs := make([]string, len(p))
	for i, one := range p {
		pairs[i] = url.QueryEscape(n.fill.Replace(one.name)) + "=" + url.QueryEscape(n.fill.Replace(one.value))
	}
	return strings.Join(pairs, "&")
}
