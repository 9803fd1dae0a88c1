// Package v2 serves the calls below /v2, in the form of Nacos 2.5.1: instances,
// services, clients, namespaces, members and switches, in the envelope of package
// result. What 3.x has too is in package modern.
//
// An [API] is safe for concurrent use and starts no goroutine.
package v2
