package grpcgo

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// codec encodes and decodes Payloads, and the messages of the health service by
// protobuf's library.
type codec struct{}

// Name is what clients call the encoding in the content type.
func (codec) Name() string { return "proto" }

// Marshal encodes an *outgoing, whose memory comes back when grpc-go has written
// it.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *outgoing:
		return v.encode(), nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	default:
		return nil, fmt.Errorf("encode a %T: no such message", v)
	}
}

// Unmarshal decodes an *incoming, which holds the data until it is released.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *incoming:
		return v.decode(data)
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	default:
		return fmt.Errorf("decode a %T: no such message", v)
	}
}

// incoming is a message of a client.
type incoming struct {
	grpcv2.Payload
	held mem.BufferSlice // what the payload is part of; nil when that is its own copy
}

func (m *incoming) decode(data mem.BufferSlice) error {
	if len(data) == 1 {
		data.Ref()
		m.held = data
		return m.Unmarshal(data[0].ReadOnlyData())
	}
	return m.Unmarshal(data.Materialize())
}

// release gives the memory back.
func (m *incoming) release() {
	m.held.Free()
	*m = incoming{}
}

const (
	// messageMemory is what an outgoing message starts with, in bytes. grpc-go
	// counts references only of memory that is larger than 1 KiB.
	messageMemory = 2 << 10
	// messageKept is the largest memory that is used again, in bytes.
	messageKept = 64 << 10
	// smallTail is up to which size a tail is copied: sending one piece is cheaper
	// than sending two.
	smallTail = 2 << 10
)

// outgoing is a message to a client. Once encoded it belongs to grpc-go, which
// gives its pieces back to Put when they have been written.
type outgoing struct {
	transport.Message
	server *Server
	sent   [2][]byte // head with body, and tail
	left   int       // pieces that grpc-go holds; changed by one goroutine at a time
}

// encode puts the head of the Payload before the body.
func (m *outgoing) encode() mem.BufferSlice {
	if len(m.Tail) <= smallTail {
		m.Buf = append(m.Buf, m.Tail...)
		m.Tail = nil
	}
	body := len(m.Buf) - transport.Headroom
	var room [transport.Headroom]byte
	head := grpcv2.AppendHead(room[:0], &grpcv2.Head{Type: m.Type, ClientIP: m.ClientIP}, body+len(m.Tail))
	start := transport.Headroom - len(head)
	copy(m.Buf[start:], head)
	m.sent[0] = m.Buf[start:]
	m.left = 1
	if m.Tail == nil {
		return mem.BufferSlice{mem.NewBuffer(&m.sent[0], m)}
	}
	m.left = 2
	m.sent[1] = m.Tail
	return mem.BufferSlice{mem.NewBuffer(&m.sent[0], m), mem.NewBuffer(&m.sent[1], m)}
}

// Get is not used: an outgoing message is a pool for its own pieces only.
func (*outgoing) Get(int) *[]byte { panic("grpcgo: an outgoing message has no memory to give") }

// Put takes back a piece that has been written, or never will be.
func (m *outgoing) Put(*[]byte) {
	if m.left--; m.left > 0 {
		return
	}
	if m.Written != nil {
		m.Written()
	}
	m.server.recycle(m)
}
