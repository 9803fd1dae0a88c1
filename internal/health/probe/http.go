package probe

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxHead bounds the head of an HTTP answer that is read, in bytes. The body is
// of no interest.
const maxHead = 64 << 10

// http sends one GET on a connection of its own: no redirects, no proxies, and
// nothing that outlives the check.
func (p *Prober) http(ctx context.Context, t *Target) Result {
	req, err := newRequest(t)
	if err != nil {
		return Result{Down, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	conn, err := p.dial(ctx, t)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = conn.Close() }() // the answer is known by then
	// Ends reading and writing when ctx ends, early or by its deadline.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	status, err := exchange(conn, req)
	if err != nil {
		return failed(err)
	}
	return judgeStatus(status, cmp.Or(t.Check.ExpectedCode, http.StatusOK))
}

// newRequest builds the request that a cluster's settings ask for. Only path and
// query are taken from them, never another host.
func newRequest(t *Target) (*http.Request, error) {
	ref, err := url.Parse(t.Check.Path)
	if err != nil {
		return nil, errors.New("the path of the health checker is no URL path")
	}
	u := &url.URL{
		Scheme: "http", Host: t.Address(), Path: ref.Path, RawPath: ref.RawPath,
		RawQuery: strings.ReplaceAll(ref.RawQuery, " ", "%20"), // which Parse lets through
	}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path, u.RawPath = "/"+u.Path, ""
	}
	req := &http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host, Close: true,
		Header: http.Header{"User-Agent": {"Rollcall"}},
	}
	for pair := range strings.SplitSeq(t.Check.Headers, "|") {
		key, value, ok := strings.Cut(pair, ":") // the value may hold more colons
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok || !validHeader(key, value): // left out, as in Nacos
		case strings.EqualFold(key, "Host"):
			req.Host = value
		default:
			req.Header.Set(key, value)
		}
	}
	return req, nil
}

// validHeader reports whether a header can be sent: its name is a token, and its
// value is free of control characters. Source: RFC 9110, 5.1 and 5.5.
func validHeader(key, value string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	noToken := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }
	return key != "" && strings.IndexFunc(key, noToken) < 0 && strings.IndexFunc(value, control) < 0
}

// exchange sends the request and returns the status of the answer.
func exchange(conn net.Conn, req *http.Request) (int, error) {
	if err := req.Write(conn); err != nil {
		return 0, err
	}
	in := bufio.NewReaderSize(io.LimitReader(conn, maxHead), 1<<10)
	for {
		answer, err := http.ReadResponse(in, req) //nolint:bodyclose // closing would read the body to its end; the connection is closed instead
		if err != nil {
			return 0, err
		}
		if answer.StatusCode >= http.StatusOK || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer.StatusCode, nil
		}
	}
}

// judgeStatus follows Nacos: a redirect or an overload may pass, any other
// status than the wanted one is final.
func judgeStatus(status, want int) Result {
	detail := fmt.Sprintf("status %d, want %d", status, want)
	switch status {
	case want:
		return Result{Outcome: Up}
	case http.StatusFound, http.StatusServiceUnavailable:
		return Result{Down, detail}
	default:
		return Result{Refused, detail}
	}
}
