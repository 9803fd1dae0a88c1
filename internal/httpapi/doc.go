// Package httpapi is the HTTP/1.1 front door of a server: connections, routing,
// parameters, and the forms of answers that every API package (v1, legacy, v2, v3,
// ops) shares. It knows no rule of naming, and others listen for it.
//
// A handler is a func(*Exchange). An Exchange is one request and its answer; it
// and every string it hands out live until the handler returns, then their
// memory serves the next request. What must outlive the handler is cloned
// (strings.Clone, Params.Copy). Under the race detector that memory is
// overwritten after each request, so a string kept by mistake shows in tests.
//
// The connection loop and the reading of a request's head are ours, for the reasons
// and numbers in docs/decisions/0002-http-stack.md: an idle connection holds no
// buffer, a slow sender holds no more than it has sent, every limit has its own
// answer, and what two servers could read in two ways is refused.
//
// A Server and a Router are safe for concurrent use. An Exchange belongs to the
// goroutine of its connection.
package httpapi
