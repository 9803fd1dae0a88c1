// Package foreign answers calls that clients of Nacos, and what stands around
// them, make of a registry although they are not about naming: configurations,
// service discovery for Prometheus, the list of servers, health of the process,
// and the root page. Each has the answer that keeps the naming half of the caller
// healthy and quiet; see docs/divergence.md for those that differ from Nacos.
//
// An [API] is safe for concurrent use and starts no goroutine.
package foreign
