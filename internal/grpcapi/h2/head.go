package h2

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// head is a header list that is being received, with what counts of it.
type head struct {
	open      bool // its end has not come
	id        uint32
	endStream bool
	encoded   int // length of its block so far
	size      int // by HTTP/2's measure
	tooLarge  bool
	malformed bool
	regular   bool // a field that is no pseudo-header has come

	method, scheme, path, authority string
	authorities, hosts              int
	contentType, encoding, timeout  string
	hasTimeout                      bool
	contentLength                   int64 // -1 when none is announced
}

func (h *head) begin(id uint32, endStream bool) {
	*h = head{open: true, id: id, endStream: endStream, contentLength: -1}
}

// add takes a field. It returns false when no more fields are needed.
func (h *head) add(f *hpack.HeaderField) bool {
	h.size += int(f.Size())
	switch {
	case h.size > maxHeaders:
		h.tooLarge = true
	case f.IsPseudo():
		h.pseudo(f)
	default:
		h.regular = true
		h.field(f)
	}
	if !httpguts.ValidHeaderFieldValue(f.Value) {
		h.malformed = true
	}
	return !h.tooLarge && !h.malformed
}

// pseudo takes a pseudo-header, each of which must come once and before all other
// fields (RFC 9113, 8.3).
func (h *head) pseudo(f *hpack.HeaderField) {
	var into *string
	switch f.Name {
	case ":method":
		into = &h.method
	case ":scheme":
		into = &h.scheme
	case ":path":
		into = &h.path
	case ":authority":
		h.authorities++
		into = &h.authority
	default:
		h.malformed = true
		return
	}
	if *into != "" || f.Value == "" && f.Name != ":authority" || h.regular {
		h.malformed = true
	}
	*into = f.Value
}

// field takes any other field. Fields that are about a connection of HTTP/1.1 make
// a request malformed (RFC 9113, 8.2.2).
func (h *head) field(f *hpack.HeaderField) {
	switch f.Name {
	case "content-type":
		h.contentType = f.Value
	case "grpc-encoding":
		h.encoding = f.Value
	case "grpc-timeout":
		h.timeout, h.hasTimeout = f.Value, true
	case "host":
		h.hosts++
	case "content-length":
		n, err := strconv.ParseInt(f.Value, 10, 64)
		if err != nil || n < 0 || h.contentLength >= 0 && h.contentLength != n {
			h.malformed = true
		}
		h.contentLength = n
	case "te":
		h.malformed = h.malformed || f.Value != "trailers"
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		h.malformed = true
	default:
		h.malformed = h.malformed || !validName(f.Name)
	}
}

// validName reports whether a name may stand in HTTP/2, where all are in lower case.
func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return httpguts.ValidHeaderFieldName(name)
}

// incomplete reports whether a request lacks what every request has.
func (h *head) incomplete() bool { return h.method == "" || h.scheme == "" || h.path == "" }

// isGRPC reports whether the content type is that of gRPC, of whatever encoding.
func (h *head) isGRPC() bool {
	rest, ok := strings.CutPrefix(h.contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// deadline returns when the call must have been answered; zero when it may take as
// long as it likes.
func (h *head) deadline() (at time.Time, ok bool) {
	if !h.hasTimeout {
		return time.Time{}, true
	}
	timeout, ok := parseTimeout(h.timeout)
	if !ok {
		return time.Time{}, false
	}
	return time.Now().Add(timeout), true
}
