// Package rpc is the connection of a gRPC client for a load generator: one stream in
// both directions, opened with the connection, and unary calls beside it, one at a
// time, as a client of Nacos 2.x and later uses its connection.
//
// It exists because grpc-go's client costs more than the servers that are measured:
// per connection three goroutines and tens of kilobytes, per call tens of
// allocations. Here a connection is one goroutine, and a call allocates nothing.
// What is left out is what the two methods do not need: compression, retries,
// name resolution, several calls at once.
//
// A [Conn] is safe for concurrent use; calls wait for each other.
package rpc
