// Package v1 is the HTTP API of the 1.x generation of Nacos as release 1.4.8
// answers it: the naming calls below /v1/ns, and those of its console, of
// authentication while that is off, and about members. It is one thin adapter that
// decodes a request, calls package naming, and encodes what comes back. It also
// encodes the payload of the UDP packets that clients of this generation are
// pushed.
//
// Rules of naming are in packages naming and registry; an answer that differs
// from 1.4.8 on purpose is a row in docs/divergence.md.
//
// An [API] is safe for concurrent use and starts no goroutine.
package v1
