package h2

import (
	"errors"
	"fmt"
	"time"
)

// Config is what connections may take.
type Config struct {
	MaxConns      int `config:"grpc.max-connections" help:"Most gRPC connections at once; 0 is no limit. One more is told so and closed." reload:"true"`
	MaxConnsPerIP int `config:"grpc.max-connections-per-address" help:"Most gRPC connections of one client address; 0 is no limit." reload:"true"`
	// MaxMessageBytes is the limit of Nacos, 10 MiB, by default.
	MaxMessageBytes int `config:"grpc.max-message" unit:"bytes" help:"Largest gRPC message that is read."`
	// MaxMessageMemory limits the memory of messages over 64 KiB of which not all
	// has come. A message beyond it ends its call with RESOURCE_EXHAUSTED.
	MaxMessageMemory int64 `config:"grpc.max-message-memory" unit:"bytes" help:"Memory of all large gRPC messages being received at once."`
	// MaxStreams is the smallest number that HTTP/2 recommends. Clients wait for a
	// free stream when they want more.
	MaxStreams int `config:"grpc.max-streams" help:"Most calls and streams of one gRPC connection at once."`
	// Keepalive is for connections that are lost without a word. Registered clients
	// are asked for a sign of life long before.
	Keepalive time.Duration `config:"grpc.keepalive" help:"After how much silence a gRPC connection is pinged; it is closed when nothing comes for 20 s more."`
}

// DefaultConfig returns the settings of a server that was told nothing.
func DefaultConfig() Config {
	return Config{
		MaxConns: 50_000, MaxConnsPerIP: 20_000, MaxMessageBytes: 10 << 20, MaxMessageMemory: 256 << 20, MaxStreams: 100,
		Keepalive: 2 * time.Minute,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, key string, value any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("grpc.%s: %v: give %s", key, value, want))
		}
	}
	check(c.MaxConns >= 0, "max-connections", c.MaxConns, "0 or more")
	check(c.MaxConnsPerIP >= 0, "max-connections-per-address", c.MaxConnsPerIP, "0 or more")
	check(c.MaxMessageBytes >= 4<<10 && c.MaxMessageBytes <= 1<<30, "max-message", c.MaxMessageBytes, "4KiB to 1GiB")
	check(c.MaxMessageMemory >= 1<<20, "max-message-memory", c.MaxMessageMemory, "1MiB or more")
	check(c.MaxStreams >= 8 && c.MaxStreams <= 1<<20, "max-streams", c.MaxStreams, "8 to 1048576")
	check(c.Keepalive >= 10*time.Second && c.Keepalive <= 24*time.Hour, "keepalive", c.Keepalive, "10s to 24h")
	return errors.Join(faults...)
}

const (
	// recvWindow is how much DATA a client may send ahead, in all and of a stream:
	// HTTP/2's default, which needs no word. What comes is taken at once.
	recvWindow = 64<<10 - 1
	// defaultWindow is how much DATA is sent before the client has said what it takes.
	defaultWindow = 64<<10 - 1
	// maxFrame is the largest frame that is read or sent: the smallest maximum of HTTP/2, so
	// that the client's setting does not matter.
	maxFrame = 16 << 10
	// maxHeaders bounds the header list of a request, by HTTP/2's measure, and its
	// encoded form, in bytes.
	maxHeaders = 64 << 10
	// chunkBytes is how much is gathered for one write; a frame more may be in it.
	chunkBytes = 32 << 10
	// maxBlocked bounds the calls of all connections that run in goroutines, since
	// they may block. One more holds up its connection.
	maxBlocked = 4096
	// maxStatusText bounds the text of a status, in bytes; more is cut off.
	maxStatusText = 1024
	// goAwayText bounds the text of a GOAWAY, in bytes; more is cut off.
	goAwayText = 256
)

// times are the limits in time.
type times struct {
	// sweep is how often the others are looked after, and the grain of the clock.
	sweep time.Duration
	// partial is how long a client may take for the whole of a frame, of a header
	// block, or of preface and settings.
	partial time.Duration
	// write is how long a client may leave what is sent unread before anything more
	// of it goes out.
	write time.Duration
	// message is how long messages over 64 KiB may be under way.
	message time.Duration
	// silence is when a connection is pinged, answer how long it then has.
	silence, answer time.Duration
	// linger is how long a client may take to read why it is closed, stop how long
	// all are waited for when the server stops.
	linger, stop time.Duration
}

func defaultTimes(keepalive time.Duration) times {
	return times{
		sweep: time.Second, partial: 10 * time.Second, write: 30 * time.Second, message: time.Minute,
		silence: keepalive, answer: 20 * time.Second, linger: time.Second, stop: time.Second,
	}
}
