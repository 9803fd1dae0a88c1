package h2

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// start serves on a free port of loopback.
func start(t *testing.T, h transport.Handler, limits transporttest.Limits) transporttest.Server {
	t.Helper()
	return transporttest.Serve(t, New(configOf(limits), h, slog.New(slog.DiscardHandler)))
}

func configOf(l transporttest.Limits) Config {
	return Config{
		MaxConns: l.Conns, MaxConnsPerIP: l.ConnsPerIP, MaxMessageBytes: l.Message, MaxMessageMemory: 64 << 20,
		MaxStreams: l.Streams, Keepalive: time.Minute,
	}
}

func TestTransport(t *testing.T) { transporttest.Run(t, start) }
