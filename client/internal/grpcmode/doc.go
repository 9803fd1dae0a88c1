// Package grpcmode speaks gRPC to servers of 2.x and 3.x. It implements
// [wire.FuzzyTransport].
//
// A session is one TCP connection with one stream on it: the server holds what was
// published and subscribed for as long as both live. grpc-go would dial again by
// itself, behind our back, so each connection is given exactly one socket and is
// thrown away with it.
//
// The goroutine of [Transport.Run] owns the choice of the server: it dials, waits,
// moves, and lets go. A connection has one goroutine more, which reads the stream,
// hands on what comes and acknowledges it, and a timer that asks the server for a sign
// of life after 5 s without one. When a server asks the client to leave, or is no
// longer in the list, the next connection is made first, and the old one is kept for a
// moment so that nobody misses what it published while the engine publishes anew.
//
// A connection has one place per service on the server: several instances go into it
// as a batch. Servers before 2.1.1 know no batches; there each further instance of a
// service gets a connection of its own, see spread.go.
//
// Refusals of a request say nothing about the connection and never touch it, but for
// the two that say that the server does not know the connection any more.
package grpcmode
