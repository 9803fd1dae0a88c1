package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"os"
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
	x := c.x
	x.method = methodOther
	if f := c.readHead(); f != nil {
		x.head.reset()
		return f
	}
	x.method = methodOf(alias(x.head.part(x.head.method)))
	target := x.head.part(x.head.target)
	if !validTarget(target) {
		return refused(400, "the request target has characters that must be percent-encoded")
	}
	path, query := splitTarget(target)
	x.path, x.query = alias(path), alias(query)
	c.server.router.resolve(x)
	if x.head.length == noBody || x.head.length == 0 {
		return nil
	}
	inParts, f := c.judgeBody()
	if f == nil {
		f = c.readBody()
	}
	if f == nil && inParts {
		f = c.readParts()
	}
	return f
}

// readHead reads until the empty line that ends the head. Each line is looked at
// once it is complete, so that a client that sends byte by byte does not cost the
// square of its bytes.
func (c *conn) readHead() *requestFault {
	c.limit = c.started.Add(c.server.cfg.HeaderTimeout)
	if f := c.skipEmptyLines(); f != nil {
		return f
	}
	h, limit := &c.x.head, c.server.cfg.MaxHeaderBytes
	for {
		arrived := buffered(c.reader)
		complete, f := h.scan(arrived)
		if h.end > limit || !complete && len(arrived) > limit {
			return refused(431, "the request line and headers are larger than the server takes")
		}
		if f != nil {
			return f
		}
		if complete {
			h.take(arrived)
			_, _ = c.reader.Discard(h.end)
			return nil
		}
		if len(arrived) == c.reader.Size() {
			c.growReader()
		}
		if _, err := c.reader.Peek(len(arrived) + 1); err != nil {
			return readFault(err)
		}
	}
}

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

// readBody reads the body, whatever the method, or has the handler read it.
func (c *conn) readBody() *requestFault {
	length := c.x.head.length
	most := c.x.route.MaxBodyBytes
	streamed := most > 0
	if !streamed {
		most = int64(c.server.cfg.MaxBodyBytes)
	}
	if int64(length) > most {
		return c.bodyTooLarge()
	}
	if expect := c.x.head.get("Expect"); len(expect) > 0 && !c.expectsContinue() {
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
	return bytes.EqualFold(c.x.head.get("Expect"), []byte("100-continue"))
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
