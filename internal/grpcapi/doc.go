// Package grpcapi answers clients of Nacos 2.x and 3.x over gRPC: it keeps their
// connections, answers their calls, and pushes to them. What it says is in package
// grpcv2, how it gets there in package transport; the rules of naming are those of
// package naming.
//
// A client is one connection. It registers itself with a frame on its stream; from
// then on what it registers and subscribes to lives as long as the connection.
// One that falls silent is asked for a sign of life, and evicted without one.
//
// What the server has to say to a client (pushes, probes, resets) is kept as state,
// not as a queue: the transport takes the next message when the client has read
// the one before, and of each service it is the newest state. So one slow client
// delays nobody, and costs a pointer for each of its subscriptions.
//
// Locks, in the order in which they are taken: fuzzies.mu, fuzzy.mu,
// client.subscribing, client.mu, then those of the registry. Nothing here is called
// with a lock of the registry held but [API.Emit], which takes fuzzies.changing
// alone; under that no other lock is taken.
package grpcapi
