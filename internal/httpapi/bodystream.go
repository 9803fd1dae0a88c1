package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"time"
)

// streamRate is how fast a streamed body must arrive on the average, in bytes a
// second, besides the time that every body has. 1 GiB may take a little over two
// hours.
const streamRate = 128 << 10

// bodyStream is the body of a request whose route takes it as it arrives. It
// belongs to the goroutine of its connection.
type bodyStream struct {
	conn   *conn
	body   io.Reader // without chunking
	left   int64     // bytes that may still come; of a body of known length, that will
	taken  int64     // bytes that came
	length int       // as announced, or chunked
	expect bool      // the client waits to be told to send
	err    error     // io.EOF once all of the body was read
}

// newBodyStream returns the body of the request of c, of an announced length or
// chunked, of which at most so many bytes are taken.
func newBodyStream(c *conn, length int, most int64) *bodyStream {
	b := &bodyStream{conn: c, length: length, left: int64(length), body: c.reader, expect: c.expectsContinue()}
	if length == chunked {
		b.left, b.body = most, httputil.NewChunkedReader(c.reader)
	}
	return b
}

// Read waits for the next part of the body. Its errors are those that
// [BodyFault] knows.
func (b *bodyStream) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	c := b.conn
	if b.expect {
		b.expect = false
		c.sendContinue()
	}
	cfg := &c.server.cfg
	c.limit = c.started.Add(cfg.HeaderTimeout + cfg.BodyTimeout + time.Duration(b.taken/streamRate)*time.Second)
	most := b.left
	if b.length == chunked {
		most++ // the byte that shows that there are too many
	}
	n, err := b.body.Read(p[:min(int64(len(p)), most)])
	b.left -= int64(n)
	b.taken += int64(n)
	b.err = b.end(err)
	return n + int(min(b.left, 0)), b.err
}

// end returns how the body ends after a read that returned err, nil if it goes on.
func (b *bodyStream) end(err error) error {
	switch {
	case b.left < 0:
		return b.conn.bodyTooLarge()
	case b.length != chunked && b.left == 0:
		return io.EOF
	case b.length == chunked && errors.Is(err, io.EOF):
		if f := b.conn.skipTrailer(); f != nil {
			return f
		}
		return io.EOF
	case err == nil:
		return nil
	}
	if f := readFault(err); f.status != 0 || b.length != chunked {
		return f
	}
	return refused(400, "the chunked body is malformed")
}

// unread reports whether a part of the body may still come.
func (b *bodyStream) unread() bool { return !errors.Is(b.err, io.EOF) }

// BodyReader returns the request body as it arrives, if the route has
// MaxBodyBytes, and otherwise what Body has. It is read before the handler
// returns; what is left of it then ends the connection.
func (x *Exchange) BodyReader() io.Reader {
	if x.stream != nil {
		return x.stream
	}
	return bytes.NewReader(x.body)
}

// BodyFault returns the status and the sentence that fit an error of
// [Exchange.BodyReader], however it is wrapped; ok is false for another error.
func BodyFault(err error) (status int, text string, ok bool) {
	fault, ok := errors.AsType[*requestFault](err)
	if !ok {
		return 0, "", false
	}
	if fault.status == 0 { // nobody is there to read it
		return 400, "the request ended early", true
	}
	return fault.status, fault.message, true
}
