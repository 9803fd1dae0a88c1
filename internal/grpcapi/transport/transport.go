// Package transport is the seam between what speaks gRPC and what answers it: a
// transport accepts connections and moves messages, a [Handler] gives them a
// meaning. Neither knows how the other works, so that one transport can take the
// place of another and be compared with it.
//
// The protocol has two methods. A unary call is answered by [Session.Answer].
// The stream of both directions carries requests of the server and what the
// client says to them; the server's side of it is pulled: the handler says with
// [Stream.Wake] that it has something to send, and the transport takes message
// after message from [Frames.Next] as fast as the client reads them. So what
// waits for a slow client is the handler's to merge, and no queue lies between.
package transport

import (
	"context"
	"net/netip"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// Handler makes sense of connections. Its methods must not block.
type Handler interface {
	// Accept is called for each connection before anything else of it.
	Accept(Conn) Session
}

// Session is the handler's end of one connection. Its methods are called
// concurrently.
type Session interface {
	// Blocks reports whether Answer may wait for something that takes its time, such
	// as the disk, to answer a request; a lock that is held shortly does not count.
	// A transport may have it answered in a goroutine of its own then, and only
	// then. It must not block itself.
	Blocks(*grpcv2.Payload) bool
	// Answer answers one unary call. The request and all parts of it are valid until
	// it returns. ctx ends when the client gives up or the
	// connection ends.
	Answer(ctx context.Context, request *grpcv2.Payload, answer *Message)
	// Open is called when the client opens a stream. A connection may have
	// several at a time.
	Open(Stream) Frames
	// Closed is called once, when the connection has ended; streams and calls may
	// end a moment later. stopping: the transport is being stopped, and the client
	// did nothing wrong. It may block, but not for long.
	Closed(stopping bool)
}

// Frames is the handler's end of one stream.
type Frames interface {
	// Received takes a message of the client, which is valid until it returns. The
	// messages of one stream come one after the other; the next one is read when
	// it returns.
	Received(*grpcv2.Payload)
	// Next writes the next message to be sent into m, or returns false when there
	// is none. It is called by one goroutine at a time and must not block.
	Next(m *Message) bool
	// Ended is called once, after the last message of the client: it has said that
	// nothing more comes, or the stream has broken. Next is no longer called.
	Ended()
}

// Conn is the transport's end of one connection. Its methods may be called at
// any time, also when the connection has ended, and do not block.
type Conn interface {
	// Peer is the client's address, or that of what is between; invalid when the
	// connection has no IP address.
	Peer() netip.AddrPort
	// Local is the address that the client connected to.
	Local() netip.AddrPort
	// Close ends the streams with a status and closes the connection, at the
	// latest a second later if the client does not read.
	Close(Status)
}

// Stream is the transport's end of one stream. Its methods may be called at any
// time, also when the stream has ended, and do not block.
type Stream interface {
	// Wake says that Next of the stream's Frames may have a message.
	Wake()
}

// Status is how a stream ends. Codes are those of gRPC.
type Status struct {
	Code    uint32
	Message string
}

// Unavailable is the status that sends every SDK to another server.
const Unavailable uint32 = 14

// Headroom is how much of a [Message]'s memory the transport keeps for itself,
// in bytes: enough for the head of every Payload.
const Headroom = 256

// Message is a message to be sent. Its memory belongs to the transport.
type Message struct {
	// Type names the JSON object, ClientIP is the server's own address in requests
	// and empty in answers. Both must be short.
	Type, ClientIP string
	// Buf is what the JSON object is appended to. Its first [Headroom] bytes must
	// be left alone.
	Buf []byte
	// Tail is the rest of the object, when that is shared with other messages. It
	// is not changed, and must not be while it is held.
	Tail []byte
	// Written, when set, is called once, when the message has been written to the
	// connection or never will be. It must not block.
	Written func()
}
