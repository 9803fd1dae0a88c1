// Package v3 serves the calls below /v3, in the form of Nacos 3.0.3: those of
// clients, of administrators and of the console, all on one port, and the login.
// What 2.x has too is in package modern.
//
// An [API] is safe for concurrent use and starts no goroutine.
package v3
