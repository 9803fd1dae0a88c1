package httpapi

import (
	"net/http"
	"strconv"
	"time"
)

// answer is what a handler has said so far.
type answer struct {
	status      int       // 0 until set: then 200
	contentType string    // "" leaves the header out
	headers     []byte    // further header lines, each with CRLF
	body        []byte    // not ours to change
	more        [2][]byte // of the body, see Exchange.JSONParts
	encoding    string    // Content-Encoding
	close       bool
	framing     framing
	begun       bool // a part of a streamed body is on its way
	cut         bool // and there will not be the rest
}

// framing is how a client knows where the body ends.
type framing uint8

const (
	byLength framing = iota
	byChunks         // for a stream
	byClose          // for a stream to a client of HTTP/1.0
)

func (a *answer) reset() {
	*a = answer{headers: a.headers[:0]}
}

// set replaces status, type and body; headers stay.
func (a *answer) set(status int, contentType string, body []byte) {
	a.status, a.contentType, a.body, a.more = status, contentType, body, [2][]byte{}
}

// parts returns the body, which is one of them or all together.
func (a *answer) parts() [3][]byte { return [3][]byte{a.body, a.more[0], a.more[1]} }

// size is the length of the body.
func (a *answer) size() int { return len(a.body) + len(a.more[0]) + len(a.more[1]) }

// closesConnection reports whether an answer of that status ends the connection,
// as it does in the original's container: after these a client may be out of
// step with the server, or better go to another one. Source: reference
// http-api-v1 1.1, and the list in Tomcat's AbstractProcessor.
func closesConnection(status int) bool {
	switch status {
	case 400, 408, 411, 413, 414, 417, 431, 500, 501, 503:
		return true
	default:
		return false
	}
}

// commonHeaders stand in every answer (reference http-api-v1 1.1).
const (
	securityHeader = "Content-Security-Policy: script-src 'self'\r\nX-Content-Type-Options: nosniff\r\n"
	varyHeader     = "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n"
)

// appendHead appends status line and headers of x's answer to dst.
func (x *Exchange) appendHead(dst []byte, now time.Time, keepAlive bool) []byte {
	a := &x.answer
	if a.status == 200 {
		dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
		dst = strconv.AppendInt(dst, int64(a.status), 10)
		dst = append(dst, ' ')
		dst = append(dst, http.StatusText(a.status)...)
		dst = append(dst, "\r\nDate: "...)
	}
	dst = x.conn.server.appendDate(dst, now)
	dst = append(dst, "\r\n"+securityHeader...)
	if x.conn.server.cfg.CORS {
		dst = append(dst, varyHeader...)
	}
	dst = appendHeader(dst, "Content-Type: ", a.contentType)
	dst = appendHeader(dst, "Content-Encoding: ", a.encoding)
	switch {
	case a.framing == byChunks:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case a.framing == byLength && a.status != http.StatusNoContent && a.status != http.StatusNotModified:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(a.size()), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, a.headers...)
	switch {
	case !keepAlive:
		dst = append(dst, "Connection: close\r\n"...)
	case !x.head.is11():
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

func appendHeader(dst []byte, label, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, label...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// hasBody reports whether the answer's body follows its head.
func (x *Exchange) hasBody() bool {
	s := x.answer.status
	return x.method != methodHead && s != http.StatusNoContent && s != http.StatusNotModified
}
