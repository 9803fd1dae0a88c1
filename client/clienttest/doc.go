// Package clienttest has a registry in memory, for the unit tests of programs that use
// package rollcall. Neither servers nor sockets are needed:
//
//	registry := clienttest.New()
//	registry.Set(rollcall.Service{Name: "stock"}, rollcall.NewInstance("10.0.0.1", 8080))
//	client := registry.Client(t)
//	…
//	registry.Stop() // and see what the program does without servers
//
// Clients of one [Registry] see each other. What a call changes has reached all clients
// that are connected when it returns: their snapshots show it and their channels have
// it, except for watches with [rollcall.WithFilter], whose function runs beside.
//
// The clients are the real ones: they reconnect, register again and fall back on disk as
// they would. All types are safe for concurrent use, and work in the bubbles of
// testing/synctest.
package clienttest
