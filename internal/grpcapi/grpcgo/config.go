package grpcgo

import (
	"errors"
	"fmt"
	"time"
)

// Config is what connections may take.
type Config struct {
	MaxConns      int `config:"grpc.max-connections" help:"Most gRPC connections at once; 0 is no limit. One more is told so and closed."`
	MaxConnsPerIP int `config:"grpc.max-connections-per-address" help:"Most gRPC connections of one client address; 0 is no limit."`
	// MaxMessageBytes is the limit of Nacos, 10 MiB, by default.
	MaxMessageBytes int `config:"grpc.max-message" unit:"bytes" help:"Largest gRPC message that is read."`
	// MaxStreams is the smallest number that HTTP/2 recommends. Clients wait for a
	// free stream when they want more.
	MaxStreams int `config:"grpc.max-streams" help:"Most calls and streams of one gRPC connection at once."`
}

// DefaultConfig returns the settings of a server that was told nothing.
func DefaultConfig() Config {
	return Config{MaxConns: 50_000, MaxConnsPerIP: 20_000, MaxMessageBytes: 10 << 20, MaxStreams: 100}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, key string, value int, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("grpc.%s: %d: give %s", key, value, want))
		}
	}
	check(c.MaxConns >= 0, "max-connections", c.MaxConns, "0 or more")
	check(c.MaxConnsPerIP >= 0, "max-connections-per-address", c.MaxConnsPerIP, "0 or more")
	check(c.MaxMessageBytes >= 4<<10 && c.MaxMessageBytes <= 1<<30, "max-message", c.MaxMessageBytes, "4KiB to 1GiB")
	check(c.MaxStreams >= 8 && c.MaxStreams <= 1<<20, "max-streams", c.MaxStreams, "8 to 1048576")
	return errors.Join(faults...)
}

const (
	// readBuffer holds a few frames; reading a larger message costs more calls.
	readBuffer = 2 << 10
	// writeBuffer is grpc-go's default; only connections that write have one.
	writeBuffer = 32 << 10
	// window is HTTP/2's default. grpc-go would let it grow with the bandwidth, and
	// send a ping with nearly every call to measure that.
	window = 64<<10 - 1
	// maxHeaders bounds the headers of one call, in bytes.
	maxHeaders = 64 << 10
	// handshakeTime is how long a client may take for its preface and settings.
	handshakeTime = 10 * time.Second
	// silence is when a connection is pinged, pingAnswer how long it then has: for
	// those that are lost without a word. Registered clients are asked for a sign of
	// life long before.
	silence    = 2 * time.Minute
	pingAnswer = 20 * time.Second
	// minPing is how often a client may ping. The SDKs for Go and Python ping once
	// a minute, also without a stream, which grpc-go's default takes for abuse.
	minPing = 5 * time.Second
	// lingerTime is how long a client may take to read why it is closed.
	lingerTime = time.Second
	// stopTime bounds how long clients are waited for when the server stops.
	stopTime = time.Second
)
