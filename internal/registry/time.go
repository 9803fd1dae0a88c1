package registry

import "time"

// Instant is the time of a command. Both clocks are read once, by whoever
// accepted the command, so that a replay gives the same state.
type Instant struct {
	// Wall is milliseconds since the Unix epoch: what people and clients see.
	Wall int64
	// Lease is the lease clock: time since the server started, without the
	// spans in which the server itself did not run (see health.Clock). Leases
	// are measured on it, so a clock step or a suspended machine expires nobody.
	Lease time.Duration
}
