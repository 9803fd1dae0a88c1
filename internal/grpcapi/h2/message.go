package h2

import (
	"encoding/binary"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// prefixLen is what gRPC puts before each message: a flag, and its length.
const prefixLen = 5

const (
	// messageMemory is what an outgoing message starts with, in bytes.
	messageMemory = 2 << 10
	// memoryKept is the largest memory that is used again, in bytes.
	memoryKept = 64 << 10
)

// message is a message to a client. It belongs to its stream from when it was
// encoded until its last byte has been copied into a chunk.
type message struct {
	transport.Message
	head []byte // all but the tail, part of Buf
	sent int    // of head and tail
}

// message returns an empty message.
func (s *Server) message() *message {
	if m, ok := s.messages.Get().(*message); ok {
		return m
	}
	return &message{Message: transport.Message{Buf: make([]byte, transport.Headroom, messageMemory)}}
}

// recycle takes back a message that nobody holds.
func (s *Server) recycle(m *message) {
	if cap(m.Buf) <= memoryKept {
		*m = message{Message: transport.Message{Buf: m.Buf[:transport.Headroom]}}
		s.messages.Put(m)
	}
}

// encode puts the head of the Payload and gRPC's own before the body.
func (m *message) encode() {
	size := len(m.Buf) - transport.Headroom + len(m.Tail)
	var room [transport.Headroom]byte
	m.prepend(grpcv2.AppendHead(room[:0], &grpcv2.Head{Type: m.Type, ClientIP: m.ClientIP}, size))
}

// prepend puts the head of a message and gRPC's own before the body.
func (m *message) prepend(head []byte) {
	start := transport.Headroom - len(head)
	copy(m.Buf[start:], head)
	start -= prefixLen
	m.Buf[start] = 0 // not compressed
	binary.BigEndian.PutUint32(m.Buf[start+1:], uint32(len(m.Buf)-start-prefixLen+len(m.Tail)))
	m.head = m.Buf[start:]
}

// left returns how many bytes wait to be sent.
func (m *message) left() int { return len(m.head) + len(m.Tail) - m.sent }

// appendNext appends the next n bytes, of which so many are left.
func (m *message) appendNext(b []byte, n int) []byte {
	if m.sent < len(m.head) {
		part := m.head[m.sent:min(len(m.head), m.sent+n)]
		b = append(b, part...)
		m.sent += len(part)
		n -= len(part)
	}
	from := m.sent - len(m.head)
	m.sent += n
	return append(b, m.Tail[max(from, 0):max(from, 0)+n]...)
}

// chunk is what one write writes.
type chunk struct {
	b []byte
	// after are functions that are called when b was written, or never will be.
	after []func()
}

func (s *Server) chunk() *chunk {
	if c, ok := s.chunks.Get().(*chunk); ok {
		return c
	}
	return new(chunk)
}

// finish says that the chunk was written, or never will be, and takes it back.
func (s *Server) finish(c *chunk) {
	for n, f := range c.after {
		f()
		c.after[n] = nil
	}
	c.b, c.after = c.b[:0], c.after[:0]
	if cap(c.b) <= memoryKept && cap(c.after) <= memoryKept/8 {
		s.chunks.Put(c)
	}
}
