package rollcallgrpc

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
)

// Server is a gRPC server that can be run by package lifecycle.
type Server struct{ server *grpc.Server }

// NewServer prepares s, of which all services must be registered already.
func NewServer(s *grpc.Server) *Server { return &Server{s} }

// Serve accepts connections until Shutdown, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown lets calls end, of which no new ones come, and ends them itself when ctx
// ends. The error is that of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	graceful := make(chan struct{})
	go func() {
		s.server.GracefulStop()
		close(graceful)
	}()
	select {
	case <-graceful:
		return nil
	case <-ctx.Done():
		s.server.Stop() // ends GracefulStop too
		<-graceful
		return context.Cause(ctx)
	}
}
