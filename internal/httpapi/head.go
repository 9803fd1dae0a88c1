package httpapi

import (
	"bytes"
	"math"
)

// head is the request line and the headers of a request. It reads less than the
// standard allows: line ends are CRLF, one blank is between the parts of the
// request line, lines are not folded, nothing is between a name and its colon, and
// nothing that says how long the body is comes twice. What two servers could read
// in two ways is how a request is smuggled past the first of them.
type head struct {
	raw    []byte // what all spans are of; nothing until take
	end    int    // of the lines that were scanned
	lines  int
	fields []headField

	method, target span
	major, minor   byte // of the version, as digits
	host           int  // index of its field, -1 for none
	length         int  // of the body; chunked or noBody
	close, keep    bool // what Connection asks for
}

// span is a part of the head, by its offsets: the bytes may move while it arrives.
type span struct{ from, to int }

type headField struct{ name, value span }

// What length says of a body without a length.
const (
	chunked = -1
	noBody  = -2
)

// maxHeaderLines limits the headers of a request, because each costs memory
// beyond its bytes. Real clients send about ten.
const maxHeaderLines = 1000

const (
	badRequestLine = "the request line is malformed"
	bothLengths    = "there are both Content-Length and Transfer-Encoding"
)

// reset makes h ready for another head, and keeps its memory unless a large head
// grew it.
func (h *head) reset() {
	*h = head{raw: shrink(h.raw), fields: h.fields[:0], host: -1, length: noBody}
}

// scan goes over the lines of b that have become complete since the last call, and
// reports whether the empty one that ends the head is among them. b begins where
// the head does, each time.
func (h *head) scan(b []byte) (complete bool, f *requestFault) {
	for f == nil {
		n := bytes.IndexByte(b[h.end:], '\n')
		if n < 0 {
			return false, nil
		}
		from := h.end
		h.end += n + 1
		h.lines++
		switch line := b[from : from+n]; {
		case n == 0 || line[n-1] != '\r':
			f = refused(400, "a line does not end in CRLF")
		case n == 1:
			return true, h.judge()
		case h.lines > maxHeaderLines:
			f = refused(431, "the request has more headers than the server takes")
		case h.lines == 1:
			f = h.requestLine(line[:n-1])
		default:
			f = h.field(b, span{from, from + n - 1})
		}
	}
	return false, f
}

// take copies a complete head, whose parts can be asked for from now on.
func (h *head) take(b []byte) { h.raw = append(h.raw[:0], b[:h.end]...) }

// requestLine reads the first line: method, target, version.
func (h *head) requestLine(line []byte) *requestFault {
	blank := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if blank < 0 || last == blank {
		return refused(400, badRequestLine)
	}
	h.method, h.target = span{0, blank}, span{blank + 1, last}
	target, version := line[blank+1:last], line[last+1:]
	if !isToken(line[:blank]) || len(target) == 0 || bytes.IndexByte(target, ' ') >= 0 {
		return refused(400, badRequestLine)
	}
	const form = "HTTP/1.1"
	if len(version) != len(form) || string(version[:5]) != form[:5] || version[6] != '.' || !digit(version[5]) || !digit(version[7]) {
		return refused(400, badRequestLine)
	}
	h.major, h.minor = version[5], version[7]
	return nil
}

// field reads one header, which is the part of b that line names.
func (h *head) field(b []byte, line span) *requestFault {
	colon := bytes.IndexByte(b[line.from:line.to], ':')
	if colon <= 0 || !isToken(b[line.from:line.from+colon]) {
		return refused(400, "a header line is malformed")
	}
	name := span{line.from, line.from + colon}
	value := span{name.to + 1, line.to}
	for value.from < value.to && blankByte(b[value.from]) {
		value.from++
	}
	for value.from < value.to && blankByte(b[value.to-1]) {
		value.to--
	}
	for _, c := range b[value.from:value.to] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return refused(400, "a header has control characters")
		}
	}
	h.fields = append(h.fields, headField{name, value})
	return h.note(b[name.from:name.to], b[value.from:value.to])
}

// note acts on the headers that tell how the request ends and what becomes of the
// connection.
func (h *head) note(name, value []byte) *requestFault {
	switch {
	case isName(name, "Host"):
		if h.host >= 0 {
			return refused(400, "there are two Host headers")
		}
		h.host = len(h.fields) - 1
	case isName(name, "Connection"):
		h.close = h.close || hasToken(value, "close")
		h.keep = h.keep || hasToken(value, "keep-alive")
	case isName(name, "Content-Length"):
		switch {
		case h.length == chunked:
			return refused(400, bothLengths)
		case h.length != noBody:
			return refused(400, "there are two Content-Length headers")
		}
		var ok bool
		if h.length, ok = parseLength(value); !ok {
			return refused(400, "Content-Length is not a number")
		}
	case isName(name, "Transfer-Encoding"):
		switch {
		case h.length >= 0:
			return refused(400, bothLengths)
		case h.length == chunked || !bytes.EqualFold(value, []byte("chunked")):
			return refused(400, "the only transfer coding served is chunked, once")
		}
		h.length = chunked
	}
	return nil
}

// judge looks at the head as a whole.
func (h *head) judge() *requestFault {
	switch {
	case h.major != '1':
		return refused(505, "the protocol version is not HTTP/1")
	case h.is11() && (h.host < 0 || h.fields[h.host].value.from == h.fields[h.host].value.to):
		return refused(400, "the Host header is missing")
	case !h.is11() && h.length == chunked:
		return refused(400, "HTTP/1.0 has no Transfer-Encoding")
	}
	return nil
}

func (h *head) is11() bool { return h.minor != '0' }

// closes reports whether the client ends the connection after this request.
func (h *head) closes() bool { return h.close || !h.is11() && !h.keep }

// get returns the first value of a header, nil if it was not sent.
func (h *head) get(name string) []byte {
	for i := range h.fields {
		if f := &h.fields[i]; isName(h.part(f.name), name) {
			return h.part(f.value)
		}
	}
	return nil
}

// all returns every value of a header, in order.
func (h *head) all(name string) (values [][]byte) {
	for i := range h.fields {
		if f := &h.fields[i]; isName(h.part(f.name), name) {
			values = append(values, h.part(f.value))
		}
	}
	return values
}

func (h *head) part(s span) []byte { return h.raw[s.from:s.to] }

// isName reports whether name, of any case, is want.
func isName(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, bytesOf(want))
}

// parseLength reads a Content-Length: digits and nothing else. One that no body can
// have is as good as the largest.
func parseLength(text []byte) (n int, ok bool) {
	for _, c := range text {
		if !digit(c) {
			return 0, false
		}
		if n > (math.MaxInt-9)/10 {
			n = (math.MaxInt - 9) / 10
		}
		n = 10*n + int(c-'0')
	}
	return n, len(text) > 0
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func blankByte(c byte) bool { return c == ' ' || c == '\t' }

// isToken reports whether b is what a method and the name of a header are (RFC 9110
// 5.6.2).
func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte[c] {
			return false
		}
	}
	return len(b) > 0
}

var tokenByte = func() (token [256]bool) {
	for c := byte('0'); c <= '9'; c++ {
		token[c] = true
	}
	for c := byte('a'); c <= 'z'; c++ {
		token[c], token[c-'a'+'A'] = true, true
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		token[c] = true
	}
	return token
}()
