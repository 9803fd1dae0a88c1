// Package server puts the parts of Rollcall together: one [Server] is one
// registry, with its data directory, its listeners and its own metrics. Several
// may live in one process; they share nothing.
//
// [Server.Run] is the one tree of everything that runs. It starts the parts in
// order, stops them in reverse, and returns when all have ended.
package server
