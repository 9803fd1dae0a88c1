package grpcgo

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// register gives grpc-go the two methods and the health service. grpc-go answers
// all other methods with UNIMPLEMENTED.
func (s *Server) register(g *grpc.Server) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcv2.UnaryService,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: grpcv2.UnaryMethod,
			Handler:    func(_ any, ss grpc.ServerStream) error { return s.answer(ss) },
		}},
	}, nil)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcv2.StreamService,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    grpcv2.StreamMethod,
			Handler:       func(_ any, ss grpc.ServerStream) error { return s.serve(ss) },
			ServerStreams: true,
			ClientStreams: true,
		}},
	}, nil)
	healthpb.RegisterHealthServer(g, s.health)
}

// connOf returns the connection that a call came on.
func connOf(ctx context.Context) (*conn, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "a call without a connection")
	}
	r, ok := p.Addr.(remote)
	if !ok {
		return nil, status.Error(codes.Internal, "a call on a foreign connection")
	}
	return r.conn, nil
}

// answer answers one unary call.
func (s *Server) answer(ss grpc.ServerStream) error {
	c, err := connOf(ss.Context())
	if err != nil {
		return err
	}
	request := s.incoming.Get().(*incoming)
	defer func() {
		request.release()
		s.incoming.Put(request)
	}()
	if err := ss.RecvMsg(request); err != nil {
		return err
	}
	answer := s.message()
	c.session.Answer(ss.Context(), &request.Payload, &answer.Message)
	return ss.SendMsg(answer)
}

// stream is one stream of both directions. Its messages are written by a
// goroutine that lives as long as there are some.
type stream struct {
	ss     grpc.ServerStream
	server *Server

	mu      sync.Mutex
	frames  transport.Frames // set once; nil while the handler is being told of the stream
	idle    sync.Cond        // signalled when writing ends; over mu
	writing bool
	again   bool // there may be more to write
	ended   bool // no more is written
}

// serve serves one stream to its end: to its client's half of it, since a client
// that sends no more does not answer pushes either.
func (s *Server) serve(ss grpc.ServerStream) error {
	c, err := connOf(ss.Context())
	if err != nil {
		return err
	}
	st := &stream{ss: ss, server: s}
	st.idle.L = &st.mu
	st.begin(c.session.Open(st))
	c.add(st)
	err = st.read()
	c.remove(st)
	st.finish()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// read hands on what the client sends until it sends no more.
func (st *stream) read() error {
	for {
		m := st.server.incoming.Get().(*incoming)
		err := st.ss.RecvMsg(m)
		if err == nil {
			st.frames.Received(&m.Payload)
		}
		m.release()
		st.server.incoming.Put(m)
		if err != nil {
			return err
		}
	}
}

// begin lets messages be written, those included that the stream has been woken
// for already.
func (st *stream) begin(frames transport.Frames) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.frames = frames
	if st.again {
		st.again, st.writing = false, true
		go st.write()
	}
}

// Wake implements transport.Stream.
func (st *stream) Wake() {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.ended:
	case st.writing, st.frames == nil:
		st.again = true
	default:
		st.writing = true
		go st.write()
	}
}

// write writes messages until there are no more. A client that does not read
// holds it up, and nobody else.
func (st *stream) write() {
	for {
		m := st.server.message()
		if st.frames.Next(&m.Message) {
			// An error says that the stream has ended, which read sees too.
			_ = st.ss.SendMsg(m)
		} else {
			st.server.recycle(m)
			if st.rest() {
				return
			}
		}
		if st.isEnded() {
			return
		}
	}
}

// rest ends the writing unless somebody has woken the stream since.
func (st *stream) rest() (done bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.again {
		st.again = false
		return false
	}
	st.writing = false
	st.idle.Signal()
	return true
}

// isEnded reports whether the stream has ended, and ends the writing if so.
func (st *stream) isEnded() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		st.writing = false
		st.idle.Signal()
	}
	return st.ended
}

// finish waits until nobody writes, and tells the handler that it is over.
func (st *stream) finish() {
	st.mu.Lock()
	st.ended = true
	for st.writing {
		st.idle.Wait()
	}
	st.mu.Unlock()
	st.frames.Ended()
}

// end ends the stream with a status. Only the function that serves a stream can
// end it by grpc-go's documented means, and that waits for the client to say
// something; a goroutine to wait in its place would cost each idle connection some
// kilobytes. So the status is written as grpc-go itself does when that function
// returns, by a method of the stream behind the context, which makes it return. A
// test holds grpc-go to it.
func (st *stream) end(s transport.Status) {
	ts := grpc.ServerTransportStreamFromContext(st.ss.Context())
	if w, ok := ts.(interface {
		WriteStatus(*status.Status) error
	}); ok {
		_ = w.WriteStatus(status.New(codes.Code(s.Code), s.Message))
	}
}
