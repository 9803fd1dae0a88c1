package grpcapi

import (
	"errors"
	"fmt"
	"time"
)

// Config sets how long clients may be silent.
type Config struct {
	// ProbeAfter is 20 s in Nacos. SDKs check their connection every 5 s.
	ProbeAfter time.Duration `config:"grpc.probe-after" help:"After how much silence a gRPC client is asked for a sign of life."`
	// ProbeTimeout is 5 s in Nacos.
	ProbeTimeout time.Duration `config:"grpc.probe-timeout" help:"How long the client may take for it; then its connection is closed and its instances go."`
	// SetupTimeout is ours: Nacos keeps such connections for ever.
	SetupTimeout time.Duration `config:"grpc.setup-timeout" help:"How long a gRPC connection may stay without registering itself or making a call."`
}

// DefaultConfig returns the times of Nacos.
func DefaultConfig() Config {
	return Config{ProbeAfter: 20 * time.Second, ProbeTimeout: 5 * time.Second, SetupTimeout: time.Minute}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	for _, t := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		// Below that, SDKs that are well would be asked all the time.
		{"probe-after", c.ProbeAfter, 6 * time.Second},
		{"probe-timeout", c.ProbeTimeout, time.Second},
		{"setup-timeout", c.SetupTimeout, 10 * time.Second},
	} {
		if t.value < t.least || t.value > time.Hour {
			faults = append(faults, fmt.Errorf("grpc.%s: %v is not between %v and 1h", t.key, t.value, t.least))
		}
	}
	return errors.Join(faults...)
}

const (
	// tick is how often silent clients and missing acknowledgements are looked for.
	tick = time.Second
	// ackTimeout is how long a client may take to acknowledge a push. Source: Nacos
	// PushConstants.DEFAULT_PUSH_TASK_TIMEOUT.
	ackTimeout = 5 * time.Second
	// retryDelay is how long after a failed push the next one is made; it doubles
	// with each failure, up to retryMax. Source: DEFAULT_PUSH_TASK_RETRY_DELAY.
	retryDelay = time.Second
	retryMax   = 30 * time.Second
	// welcomeDelay is how long after a subscription began its first push comes.
	// Source: DEFAULT_PUSH_TASK_DELAY.
	welcomeDelay = 500 * time.Millisecond
	// stuckMax is for how long a client may leave messages on its stream unread
	// while it makes calls. Source: Nacos, 300 s.
	stuckMax = 5 * time.Minute
	// resetTimeout is how long a client may take to acknowledge that it is sent
	// away. Source: recorded, 3 s.
	resetTimeout = 3 * time.Second
	// strayAfter is how long after a first health check a client that is not
	// registered may ask again before it counts as one that has not understood:
	// SDKs ask every 5 s.
	strayAfter = 4 * time.Second
)
