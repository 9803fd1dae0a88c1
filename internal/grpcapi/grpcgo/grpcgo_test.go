package grpcgo

import (
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// start serves on a free port of loopback.
func start(t *testing.T, h transport.Handler, limits transporttest.Limits) transporttest.Server {
	t.Helper()
	return transporttest.Serve(t, New(Config{
		MaxConns: limits.Conns, MaxConnsPerIP: limits.ConnsPerIP, MaxMessageBytes: limits.Message, MaxStreams: limits.Streams,
	}, h, slog.New(slog.DiscardHandler)))
}

func TestTransport(t *testing.T) { transporttest.Run(t, start) }
