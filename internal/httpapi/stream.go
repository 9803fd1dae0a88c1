package httpapi

import (
	"io"
	"strconv"
	"time"
)

// streamBytes is how much of a streamed answer is gathered before it is written.
const streamBytes = 64 << 10

// Stream answers 200 with what write writes, as it is written: a large body need
// not be in memory as a whole. A body that stays small is answered like any
// other.
//
// It returns the error of write, or that of the connection, which write gets too.
// As long as no more than 64 KiB were written nothing has left, and after an error
// the handler gives another answer. Later the connection is closed instead, and
// the client sees that the body is not complete (one of HTTP/1.0 does not); the
// handler gives no other answer then.
func (x *Exchange) Stream(contentType string, write func(w io.Writer) error) error {
	x.answer.set(200, contentType, nil)
	s := &answerStream{x: x, buf: make([]byte, 0, streamBytes)}
	if x.method == methodHead {
		return nil
	}
	err := write(s)
	if err == nil {
		err = s.end()
	}
	if err != nil && x.answer.begun {
		x.answer.cut = true
	}
	return err
}

// answerStream is the body of a streamed answer while it is made.
type answerStream struct {
	x    *Exchange
	buf  []byte
	tail string // ends the chunk before
}

func (s *answerStream) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+cap(s.buf)-len(s.buf))]
		s.buf = append(s.buf, part...)
		n += len(part)
		if len(s.buf) == cap(s.buf) {
			if err := s.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush writes what was gathered, after the head if it is the first.
func (s *answerStream) flush() error {
	c, a := s.x.conn, &s.x.answer
	c.now = time.Now()
	first := !a.begun
	if first {
		s.begin()
	}
	if a.framing == byChunks {
		s.x.out = append(s.x.out, s.tail...)
		s.x.out = strconv.AppendInt(s.x.out, int64(len(s.buf)), 16)
		s.x.out = append(s.x.out, "\r\n"...)
		s.tail = "\r\n"
	}
	err := c.writeParts(s.x.out, s.buf)
	s.x.out, s.buf = s.x.out[:0], s.buf[:0]
	if first {
		c.runAfter() // of answers that were due before
	}
	return err
}

func (s *answerStream) begin() {
	a := &s.x.answer
	a.framing, a.begun = byChunks, true
	if !s.x.head.is11() {
		a.framing = byClose
	}
	s.x.out = s.x.appendHead(s.x.out, s.x.conn.now, s.x.conn.goesOn())
}

// end writes the rest and the end of the body.
func (s *answerStream) end() error {
	a := &s.x.answer
	if !a.begun {
		a.body = s.buf
		return nil
	}
	if len(s.buf) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if a.framing == byChunks {
		return s.x.conn.write([]byte(s.tail + "0\r\n\r\n"))
	}
	return nil
}
