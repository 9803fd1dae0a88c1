// Package legacy is the HTTP API of Nacos 0.9 below /v1/ns/api, as release 0.9.0
// answers it: one thin adapter that decodes a request, calls package naming, and
// encodes what comes back. Services are "doms" here, health is "valid", there are
// no groups, and an instance is known by its address and port alone.
//
// Of the calls that 1.4.8 still has, clients that say they are of 1.0.0 or later
// get the answer of 1.4.8; see [Shared]. An answer that differs from 0.9.0 on
// purpose is a row in docs/divergence.md.
//
// An [API] is safe for concurrent use and starts no goroutine.
package legacy
