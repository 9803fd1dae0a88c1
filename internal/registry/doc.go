// Package registry is the pure core of Rollcall: the state of namespaces,
// services, clusters, instances, subscribers and switches. Commands go in,
// events come out, and readers get immutable views.
//
// The package does no I/O, starts no goroutine, reads no clock and writes no
// log. Every command carries its time ([Instant]) and its [Cause]; every event
// repeats both, so that whatever explains, audits or replays can rely on them.
// What is valid on a particular wire, and how a change becomes durable, is the
// business of the packages above (naming and the front-ends).
//
// A [Store] is safe for concurrent use. It is split into shards by the hash of
// the service; each shard has one lock, and all that belongs to a service lives
// in its shard, so every change of a service happens in one critical section.
// Instances, service settings and views are immutable once published: a change
// makes a new one.
package registry
