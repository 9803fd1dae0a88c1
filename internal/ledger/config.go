package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Config says where the history is kept and how much of it.
type Config struct {
	// Dir holds the segment files. It is created when missing, its parent is not.
	// Empty keeps the history in memory only.
	Dir string `config:"-"`

	MemoryBytes   int           `config:"history.memory" unit:"bytes" help:"How much of the recent history stays in memory."`
	BacklogBytes  int           `config:"history.backlog" unit:"bytes" help:"How much history may wait in memory for a slow or full disk; past it the oldest part is lost, which is logged. Used only while the disk does not keep up."`
	SegmentBytes  int64         `config:"history.segment" unit:"bytes" help:"Size at which a new history file is begun."`
	TotalBytes    int64         `config:"history.total" unit:"bytes" help:"Size of all history files; the oldest ones past it are deleted, save those that a restart still needs."`
	MaxAge        time.Duration `config:"history.max-age" help:"Age at which history files are deleted. A record may live an eighth longer."`
	FlushInterval time.Duration `config:"history.flush-interval" help:"How long a record may wait in memory before it is written to disk; what waits is lost when the process is killed."`
	// FlushBytes that wait are written without regard to FlushInterval.
	FlushBytes int `config:"-"`
}

// The limits of a [Config].
const (
	maxBacklog      = 1 << 30
	minSegmentBytes = 4 << 10
)

// DefaultConfig keeps a week or 256 MiB of history in dir, whichever is less.
//
// The backlog takes several seconds of a stalled disk at the highest rate of
// registrations that one core reaches; docs/decisions/0004-ledger.md has the
// measurements behind the sizes.
func DefaultConfig(dir string) Config {
	return Config{
		Dir:           dir,
		MemoryBytes:   1 << 20,
		BacklogBytes:  64 << 20,
		SegmentBytes:  16 << 20,
		TotalBytes:    256 << 20,
		MaxAge:        7 * 24 * time.Hour,
		FlushInterval: 100 * time.Millisecond,
		FlushBytes:    256 << 10,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	atLeast := func(key string, value, least int64) {
		if value < least {
			errs = append(errs, fmt.Errorf("%s: %d is below %d", key, value, least))
		}
	}
	atLeast("history.memory", int64(c.MemoryBytes), minChunkBytes)
	atLeast("history.backlog", int64(c.BacklogBytes), int64(c.MemoryBytes))
	if c.BacklogBytes > maxBacklog {
		errs = append(errs, fmt.Errorf("history.backlog: %d is above %d", c.BacklogBytes, maxBacklog))
	}
	atLeast("history.segment", c.SegmentBytes, minSegmentBytes)
	atLeast("history.total", c.TotalBytes, c.SegmentBytes)
	if c.MaxAge <= 0 {
		errs = append(errs, fmt.Errorf("history.max-age: %v is not positive", c.MaxAge))
	}
	if c.FlushInterval <= 0 {
		errs = append(errs, fmt.Errorf("history.flush-interval: %v is not positive", c.FlushInterval))
	}
	atLeast("history: flush bytes", int64(c.FlushBytes), 1)
	return errors.Join(errs...)
}

// chunkBytes is the size of a chunk of memory: small against the bounds that
// are kept by dropping whole chunks, and against a segment, so that a segment
// does not outgrow its limit.
func (c Config) chunkBytes() int {
	return max(minChunkBytes, min(maxChunkBytes, c.MemoryBytes/16, int(c.SegmentBytes/16)))
}
