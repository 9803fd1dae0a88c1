package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"os"

	"github.com/valyala/fasthttp"
)

// requestFault is why a request cannot be read. Status 0 is a connection that
// ended, and has no answer.
type requestFault struct {
	status  int
	message string
}

// Error returns the sentence.
func (f *requestFault) Error() string {
	if f.status == 0 {
		return "the connection ended"
	}
	return f.message
}

func refused(status int, message string) *requestFault { return &requestFault{status, message} }

// readFault turns the error of a read in the middle of a request into a fault.
func readFault(err error) *requestFault {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refused(408, "the request took too long to arrive")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refused(400, "the request ended early")
	default:
		return refused(0, "")
	}
}

// readRequest reads head and body of a request into c.x.
func (c *conn) readRequest() *requestFault {
	if f := c.readHead(); f != nil {
		return f
	}
	x := c.x
	if !bytes.HasPrefix(x.head.Protocol(), []byte("HTTP/1.")) {
		return refused(505, "the protocol version is not HTTP/1")
	}
	x.method = methodOf(alias(x.head.Method()))
	target := x.head.RequestURI()
	if !validTarget(target) {
		return refused(400, "the request target has characters that must be percent-encoded")
	}
	path, query := splitTarget(target)
	x.path, x.query = alias(path), alias(query)
	if x.head.IsHTTP11() && len(x.head.Host()) == 0 {
		return refused(400, "the Host header is missing")
	}
	c.server.router.resolve(x)
	return c.readBody()
}

// readHead reads until the empty line that ends the head, and then parses it
// once: parsing at every packet would let a client that sends byte by byte cost
// the square of its bytes.
func (c *conn) readHead() *requestFault {
	c.limit = c.started.Add(c.server.cfg.HeaderTimeout)
	if f := c.skipEmptyLines(); f != nil {
		return f
	}
	limit := c.server.cfg.MaxHeaderBytes
	for scan := (headScan{}); ; {
		head := buffered(c.reader)
		complete := scan.lines(head)
		if scan.next > limit || !complete && len(head) > limit {
			return refused(431, "the request line and headers are larger than the server takes")
		}
		if scan.count > maxHeaderLines {
			return refused(431, "the request has more headers than the server takes")
		}
		if scan.odd {
			return refused(400, "a header line is malformed")
		}
		if scan.hosts > 1 {
			return refused(400, "there are two Host headers")
		}
		if complete {
			return c.parseHead()
		}
		if len(head) == c.reader.Size() {
			c.growReader()
		}
		if _, err := c.reader.Peek(len(head) + 1); err != nil {
			return readFault(err)
		}
	}
}

// maxHeaderLines limits the headers of a request, because each costs memory
// beyond its bytes. Real clients send about ten.
const maxHeaderLines = 1000

// headScan looks for the end of a head, each byte once however it arrives.
type headScan struct {
	next  int  // where the first line that is not complete begins
	count int  // lines so far
	hosts int  // Host headers so far; two are refused (RFC 9112, 3.2)
	odd   bool // a line that some proxies read in another way than we do
}

// lines goes over the lines of head that have become complete, and reports
// whether the empty one that ends the head is among them. Odd are lines that end
// in LF alone, are folded, or have a blank before the colon.
func (s *headScan) lines(head []byte) (complete bool) {
	for {
		n := bytes.IndexByte(head[s.next:], '\n')
		if n < 0 {
			return false
		}
		s.count++
		line := head[s.next : s.next+n]
		s.next += n + 1
		switch colon := bytes.IndexByte(line, ':'); {
		case n == 0 || line[n-1] != '\r':
			s.odd = true
			return n == 0
		case n == 1:
			return true
		case s.count > 1: // the first is the request line
			s.odd = s.odd || blankByte(line[0]) || colon > 0 && blankByte(line[colon-1])
			if colon == len("Host") && bytes.EqualFold(line[:colon], []byte("Host")) {
				s.hosts++
			}
		}
	}
}

func blankByte(c byte) bool { return c == ' ' || c == '\t' }

// skipEmptyLines drops line ends before a request line, as RFC 9112 2.2 asks. What
// cannot begin one, such as a TLS handshake, is refused without a wait for more.
func (c *conn) skipEmptyLines() *requestFault {
	for range 8 {
		b, err := c.reader.Peek(1)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return refused(0, "")
			}
			return readFault(err)
		}
		switch first := b[0]; {
		case first == '\r' || first == '\n':
		case first <= ' ' || first >= 0x7f:
			return refused(400, "this does not begin like a request of HTTP/1.1; is it TLS on a plain port?")
		default:
			return nil
		}
		_, _ = c.reader.Discard(1)
	}
	return refused(400, "the request line is empty")
}

// buffered returns what r holds without reading.
func buffered(r *bufio.Reader) []byte {
	b, _ := r.Peek(r.Buffered())
	return b
}

// growReader moves to a reader that holds the largest head.
func (c *conn) growReader() {
	large := c.server.largeReaders.Get().(*bufio.Reader)
	// The small reader stays the source of its bytes until they are moved.
	large.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(buffered(c.reader))), c))
	c.releaseReader()
	c.reader = large
}

// parseHead parses a complete head.
func (c *conn) parseHead() *requestFault {
	h := &c.x.head
	switch err := h.Read(c.reader); {
	case err == nil:
	case errors.Is(err, fasthttp.ErrDuplicateContentLength):
		return refused(400, "there are two Content-Length headers")
	default:
		return refused(400, "the request line or a header is malformed")
	}
	if h.ContentLength() == chunked && hasContentLength(h.RawHeaders()) {
		return refused(400, "there are both Content-Length and Transfer-Encoding")
	}
	return nil
}

func hasContentLength(headers []byte) bool {
	for line := range bytes.Lines(headers) {
		if name, _, _ := bytes.Cut(line, []byte{':'}); bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			return true
		}
	}
	return false
}

// What fasthttp's ContentLength says of a body without a length.
const (
	chunked = -1
	noBody  = -2
)

// readBody reads the body, whatever the method, or has the handler read it.
func (c *conn) readBody() *requestFault {
	length := c.x.head.ContentLength()
	if length == noBody || length == 0 {
		return nil
	}
	most := c.x.route.MaxBodyBytes
	streamed := most > 0
	if !streamed {
		most = int64(c.server.cfg.MaxBodyBytes)
	}
	if int64(length) > most {
		return c.bodyTooLarge()
	}
	if expect := c.x.head.Peek("Expect"); len(expect) > 0 && !c.expectsContinue() {
		return refused(417, "the only expectation served is 100-continue")
	}
	if streamed {
		c.x.stream = newBodyStream(c, length, most)
		return nil
	}
	c.sendContinue()
	c.limit = c.started.Add(c.server.cfg.HeaderTimeout + c.server.cfg.BodyTimeout)
	if length == chunked {
		return c.readChunked()
	}
	return c.readFixed(length)
}

// expectsContinue reports whether the client waits with its body until it is told
// to send.
func (c *conn) expectsContinue() bool {
	return bytes.EqualFold(c.x.head.Peek("Expect"), []byte("100-continue"))
}

// sendContinue tells a client that waits to send its body, before the next read
// that has to wait.
func (c *conn) sendContinue() {
	if c.reader.Buffered() == 0 && c.expectsContinue() {
		c.x.out = append(c.x.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
	}
}

func (c *conn) bodyTooLarge() *requestFault {
	return refused(413, "the request body is larger than the server takes")
}

// readFixed reads a body of known length. Its memory grows with what has arrived,
// not with what was announced.
func (c *conn) readFixed(length int) *requestFault {
	b := c.x.body[:0]
	for len(b) < length {
		if len(b) == cap(b) {
			var f *requestFault
			if b, f = c.growBody(b, length); f != nil {
				return f
			}
		}
		n, err := c.reader.Read(b[len(b):min(cap(b), length)])
		b = b[:len(b)+n]
		if err != nil {
			return readFault(err)
		}
	}
	c.x.body = b
	return nil
}

// growBody doubles the capacity of b, up to most, if the memory for large bodies
// allows.
func (c *conn) growBody(b []byte, most int) ([]byte, *requestFault) {
	size := min(max(2*cap(b), startBytes), most)
	if size > keepBytes && !c.reserveBody(int64(size)) {
		return b, refused(503, "the server has too many large request bodies in hand")
	}
	grown := make([]byte, len(b), size)
	copy(grown, b)
	return grown, nil
}

// reserveBody makes our part of the memory for large bodies size bytes, or
// reports that there is not so much left.
func (c *conn) reserveBody(size int64) bool {
	more := size - c.reserved
	if c.server.largeBody.Add(more) > c.server.cfg.MaxBodyMemory {
		c.server.largeBody.Add(-more)
		return false
	}
	c.reserved = size
	return true
}

func (c *conn) releaseBody() {
	if c.reserved > 0 {
		c.server.largeBody.Add(-c.reserved)
		c.reserved = 0
	}
}

// readChunked reads a chunked body and drops its trailer.
func (c *conn) readChunked() *requestFault {
	chunks := httputil.NewChunkedReader(c.reader)
	b, most := c.x.body[:0], c.server.cfg.MaxBodyBytes
	for {
		if len(b) == cap(b) {
			var f *requestFault
			if b, f = c.growBody(b, most+1); f != nil {
				return f
			}
		}
		n, err := chunks.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; len(b) > most {
			return c.bodyTooLarge()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if f := readFault(err); f.status != 0 {
				return f
			}
			return refused(400, "the chunked body is malformed")
		}
	}
	c.x.body = b
	return c.skipTrailer()
}

// skipTrailer reads the lines after the last chunk, up to an empty one.
func (c *conn) skipTrailer() *requestFault {
	for total := 0; total <= c.server.cfg.MaxHeaderBytes; {
		line, err := c.reader.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return refused(431, "a trailer line is larger than the server takes")
		}
		if err != nil {
			return readFault(err)
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return nil
		}
		total += len(line)
	}
	return refused(431, "the trailer is larger than the server takes")
}
