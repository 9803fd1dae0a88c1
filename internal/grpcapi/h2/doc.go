// Package h2 is Rollcall's own transport of gRPC: HTTP/2 (RFC 9113) and gRPC as a
// server speaks them, for the two methods of the protocol and for grpc.health.v1.
// It implements the seam of package transport and knows nothing of what messages
// mean. TLS is the work of those who hand it connections.
//
// It is made for thousands of connections that are idle nearly always. A connection
// has one goroutine, which reads frames and answers calls that do not block; while
// nothing comes it holds no buffer, and waits for its socket to become readable. A
// stream has no goroutine: those that have something to send stand in a queue of
// their connection, which whoever has the turn to write empties into one write
// after the other. A few writers that all connections share take the turn for
// messages that come of themselves; a client whose socket is full gets a goroutine
// until it has read.
//
// Frames and header blocks are parsed by golang.org/x/net/http2 and hpack. What is
// sent is appended by hand, with headers that use no dynamic table.
//
// Everything that a client can make the server hold or do has a bound: connections,
// streams, header lists, frames, messages, memory of messages that are received,
// frames that are no message and lead to none, output that waits, and time.
package h2
