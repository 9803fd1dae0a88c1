package servers

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait between attempts: the n-th wait is random between
// zero and Min·2ⁿ⁻¹, at most Max ("full jitter"), so that many clients which lost
// one server do not come back at once.
type Backoff struct{ Min, Max time.Duration }

// Delay returns the wait before the attempt that follows n failures in a row.
func (b Backoff) Delay(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	ceiling := b.Max
	if shift := n - 1; shift < 32 && b.Min<<shift < b.Max && b.Min<<shift > 0 {
		ceiling = b.Min << shift
	}
	return rand.N(ceiling + 1)
}
