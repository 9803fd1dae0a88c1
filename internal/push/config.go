package push

import (
	"errors"
	"fmt"
	"time"
)

// Config bounds the merging of changes.
type Config struct {
	MinWindow time.Duration `config:"push.min-window" help:"How long further changes of a service are gathered after a push, at least. The first change of a quiet service is never held."`
	MaxWindow time.Duration `config:"push.max-window" help:"How long changes of a service are gathered at most, under load or when they do not stop."`
}

// DefaultConfig returns a window of 10 to 500 milliseconds. 500 is what clients
// of Nacos 2.x are used to for every push, and 1.x takes 1000.
func DefaultConfig() Config {
	return Config{MinWindow: 10 * time.Millisecond, MaxWindow: 500 * time.Millisecond}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	if c.MinWindow < time.Millisecond {
		faults = append(faults, fmt.Errorf("push.min-window: %v is too short; write 1ms or more", c.MinWindow))
	}
	if c.MaxWindow < c.MinWindow || c.MaxWindow > time.Minute {
		faults = append(faults, fmt.Errorf("push.max-window: %v is not between push.min-window and 1m", c.MaxWindow))
	}
	return errors.Join(faults...)
}

// costFactor is how much longer a service is left alone than a push of it took:
// one service may cost about a tenth of what can be sent.
const costFactor = 10

// nextWindow returns the window after a push that told of so many commands and
// cost so much, when the one before it was last (0: the service was quiet).
func (c Config) nextWindow(last time.Duration, commands int, cost time.Duration) time.Duration {
	next := last / 2
	if commands > 1 {
		next = 2 * last
	}
	return min(max(c.MinWindow, next, costFactor*cost), c.MaxWindow)
}
