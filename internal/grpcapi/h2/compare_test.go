package h2

import (
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpcgo"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// startGRPCGo serves with grpc-go on a free port of loopback.
func startGRPCGo(t *testing.T, h transport.Handler, limits transporttest.Limits) transporttest.Server {
	t.Helper()
	return transporttest.Serve(t, grpcgo.New(grpcgo.Config{
		MaxConns: limits.Conns, MaxConnsPerIP: limits.ConnsPerIP, MaxMessageBytes: limits.Message, MaxStreams: limits.Streams,
	}, h, slog.New(slog.DiscardHandler)))
}

// Whatever a client says, it gets the answer that it would get of grpc-go, but for
// what is listed with a reason.
func TestAsGRPCGo(t *testing.T) { transporttest.Compare(t, start, startGRPCGo) }
