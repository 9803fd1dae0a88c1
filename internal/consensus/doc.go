// Package consensus keeps persistent data durable: an ordered log of commands
// that is on disk before a proposal is answered, snapshots that keep the log
// short, and a checked stream for backup and restore.
//
// The commands and the state they make are opaque bytes to this package; the
// owner of the state implements [FSM]. This is the only package that imports
// hashicorp/raft, and its types do not leave it, but for [Transport].
// A stand-alone server is a cluster of one voter through the same code.
//
// A [Log] is safe for concurrent use. See docs/decisions/0003-durable-store.md.
package consensus
