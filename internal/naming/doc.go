// Package naming is the one API that every front-end calls: it checks what is
// asked, decides whether a change goes through the durable log or is applied at
// once, and answers look-ups. A rule of naming is here or in package registry,
// once; front-ends decode, call, and encode.
//
// A [Core] is safe for concurrent use. Calls that make durable changes block
// until the change is on disk and applied; all others take a shard's lock for
// microseconds.
package naming
