package h2

import (
	"encoding/binary"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// next takes from p what belongs to the next message of the stream, and returns the
// message when it is whole; nil when it is not. The message is part of p or of
// st.part, and valid until that is released. A fault ends the stream.
func (st *stream) next(p []byte) (message, rest []byte, fault *transport.Status) {
	s := st.conn.server
	if len(st.part) == 0 && len(p) >= prefixLen {
		size, fault := s.messageSize(p)
		if fault != nil {
			return nil, nil, fault
		}
		if whole := prefixLen + size; len(p) >= whole {
			return p[prefixLen:whole:whole], p[whole:], nil
		}
	}
	if p = st.add(p, prefixLen); len(st.part) < prefixLen {
		return nil, p, nil
	}
	size, fault := s.messageSize(st.part)
	if fault != nil {
		return nil, nil, fault
	}
	whole := prefixLen + size
	if !st.grow(min(whole, len(st.part)+len(p)), whole) {
		return nil, nil, &transport.Status{Code: resourceExhausted, Message: "too many large messages at once"}
	}
	if p = st.add(p, whole); len(st.part) < whole {
		return nil, p, nil
	}
	return st.part[prefixLen:], p, nil
}

// add moves bytes from p into the part until that is whole, and returns the rest.
func (st *stream) add(p []byte, whole int) []byte {
	if st.part == nil {
		st.part = st.conn.server.body()
	}
	n := max(min(whole-len(st.part), len(p)), 0)
	st.part = append(st.part, p[:n]...)
	return p[n:]
}

// grow makes room for need bytes of a message of whole bytes. Room grows with what
// has come, not with what is announced, and large room is counted. It returns false
// when there is no more of that.
func (st *stream) grow(need, whole int) bool {
	if need <= cap(st.part) {
		return true
	}
	room := min(2*need, whole)
	if room > memoryKept && !st.reserve(room) {
		return false
	}
	st.part = append(make([]byte, 0, room), st.part...)
	return true
}

// keep takes a message out of memory that will be used again.
func (st *stream) keep(message []byte) []byte {
	if len(st.part) > 0 {
		return message // it is ours
	}
	var prefix [prefixLen]byte
	st.part = append(append(st.conn.server.body(), prefix[:]...), message...)
	return st.part[prefixLen:]
}

// release gives the memory of the client's message back.
func (st *stream) release() {
	if cap(st.part) > memoryKept {
		st.conn.mu.Lock()
		st.unreserve()
		st.conn.mu.Unlock()
	}
	st.drop()
}

// drop is release for a stream that is closed.
func (st *stream) drop() {
	if st.part != nil {
		st.conn.server.recycleBody(st.part)
		st.part, st.request = nil, nil
	}
}

// reserve takes a part of the memory of large messages, in the place of the part
// that the stream has, if there is as much.
func (st *stream) reserve(room int) bool {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	more := int64(room - st.reserved)
	if st.closed || !c.server.reserve(more) {
		return false
	}
	if c.reserved == 0 {
		c.loading = c.server.now()
	}
	c.reserved += int(more)
	st.reserved = room
	return true
}

// unreserve gives the stream's part back. The caller holds conn.mu.
func (st *stream) unreserve() {
	if st.reserved == 0 {
		return
	}
	c := st.conn
	c.reserved -= st.reserved
	c.server.large.Add(-int64(st.reserved))
	st.reserved = 0
	c.loading = c.server.now()
}

// reserve takes n bytes of the memory of large messages, if there are as many.
func (s *Server) reserve(n int64) bool {
	if s.large.Add(n) <= s.cfg.MaxMessageMemory {
		return true
	}
	s.large.Add(-n)
	return false
}

// body returns memory for a message that comes in pieces.
func (s *Server) body() []byte {
	if b, ok := s.bodies.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, messageMemory)
}

// recycleBody takes memory back that nobody holds.
func (s *Server) recycleBody(b []byte) {
	if cap(b) <= memoryKept {
		b = b[:0]
		s.bodies.Put(&b)
	}
}

// messageSize reads the prefix of a message.
func (s *Server) messageSize(prefix []byte) (int, *transport.Status) {
	const notCompressed, compressed = 0, 1
	switch prefix[0] {
	case notCompressed:
	case compressed:
		return 0, &transport.Status{Code: internal, Message: "a compressed message without an encoding"}
	default:
		return 0, &transport.Status{Code: internal, Message: "a message with an unknown flag"}
	}
	size := binary.BigEndian.Uint32(prefix[1:])
	if uint64(size) > uint64(s.cfg.MaxMessageBytes) {
		return 0, &transport.Status{Code: resourceExhausted, Message: tooLarge(size, s.cfg.MaxMessageBytes)}
	}
	return int(size), nil
}
