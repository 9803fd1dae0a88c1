package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/admission"

	"github.com/klauspost/compress/gzip"
)

// Server serves HTTP/1.1 connections with one Router. New starts nothing.
type Server struct {
	cfg    Config
	router *Router
	log    *slog.Logger

	admission *admission.Gate
	date      atomic.Pointer[dateLine]
	panics    atomic.Uint64 // numbers the panics of handlers
	largeBody atomic.Int64  // memory of bodies over keepBytes, in bytes
	answers   answerMemory

	// Memory of connections that have a request in hand.
	exchanges    sync.Pool // *Exchange
	readers      sync.Pool // *bufio.Reader of readerBytes
	largeReaders sync.Pool // *bufio.Reader that holds the largest head
	compressors  sync.Pool // *compressor
}

// readerBytes is the read buffer that a request starts with: enough for the head
// of every known client.
const readerBytes = 4 << 10

// New returns a server, or every fault of cfg.
func New(cfg Config, router *Router, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	s := &Server{cfg: cfg, router: router, log: log.With("component", "httpapi")}
	s.admission = admission.New(cfg.MaxConns, cfg.MaxConnsPerIP)
	s.answers.init(cfg.MaxAnswerMemory)
	s.exchanges.New = func() any { return newExchange() }
	s.readers.New = func() any { return bufio.NewReaderSize(nil, readerBytes) }
	s.largeReaders.New = func() any { return bufio.NewReaderSize(nil, cfg.MaxHeaderBytes+readerBytes) }
	s.compressors.New = func() any {
		// The level is valid, so there is no error.
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		return &compressor{w: w}
	}
	return s, nil
}

// Serve accepts connections from ln until ctx ends. Then it closes ln and idle
// connections, gives running requests Config.DrainTimeout, closes what is left
// and returns nil. It returns an error only if ln fails for good. It may be
// called for several listeners.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	work, finish := s.workContext(ctx)
	defer finish()

	var conns sync.WaitGroup
	defer conns.Wait()
	for delay := time.Duration(0); ; {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			delay = 0
			conns.Go(func() {
				s.admit(nc, func() { s.serveAccepted(ctx, work, nc) })
			})
		case ctx.Err() != nil:
			return nil
		case !acceptAgain(err):
			_ = ln.Close()
			return fmt.Errorf("accept: %w", err)
		default:
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.log.Error("cannot accept connections", "err", err, "pause", delay)
			if !pause(ctx, delay) {
				return nil
			}
		}
	}
}

// acceptAgain reports whether err passes: the process or the host is out of file
// descriptors or memory, or the client has gone before it was accepted.
func acceptAgain(err error) bool {
	for _, passing := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// pause waits for d or the end of ctx, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// workContext returns a context that ends DrainTimeout after ctx, or at finish.
func (s *Server) workContext(ctx context.Context) (work context.Context, finish func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(s.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-work.Done():
		}
	})
	return work, func() { stop(); cancel() }
}

// ServeConn serves one connection and returns when it is closed; nc is closed
// then. prefix is what has been read from nc already, by one who tells protocols
// apart by their first bytes. The limits on connections hold here too; TLS and
// the PROXY header are the caller's. When ctx ends the connection is closed as
// Serve does.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn, prefix []byte) {
	work, finish := s.workContext(ctx)
	defer finish()
	s.admit(nc, func() { s.serve(ctx, work, nc, peerOf(nc), prefix) })
}

// admit runs serve if the number of connections allows, and closes nc.
func (s *Server) admit(nc net.Conn, serve func()) {
	if r := s.admission.Enter(); r != nil {
		s.refuse(nc, r)
		return
	}
	defer s.admission.Leave()
	defer func() { _ = nc.Close() }()
	serve()
}

// serveAccepted does what must come before HTTP on a fresh connection.
func (s *Server) serveAccepted(ctx, work context.Context, nc net.Conn) {
	peer := peerOf(nc)
	var prefix []byte
	if s.cfg.ProxyProtocol && s.trusted(peer.Addr()) {
		var err error
		if peer, prefix, err = readProxyHeader(nc, peer, s.cfg.HeaderTimeout); err != nil {
			s.log.Debug("connection refused", "reason", "bad PROXY header", "client_id", peer, "err", err)
			return
		}
	}
	s.serve(ctx, work, nc, peer, prefix)
}

// serve serves an admitted connection to its end, if the number of those from its
// address allows.
func (s *Server) serve(ctx, work context.Context, nc net.Conn, peer netip.AddrPort, prefix []byte) {
	if r := s.admission.EnterFrom(peer.Addr()); r != nil {
		s.refuse(nc, r)
		return
	}
	defer s.admission.LeaveFrom(peer.Addr())

	c := newConn(s, nc, peer, prefix)
	c.work, c.draining = work, ctx.Done()
	defer context.AfterFunc(ctx, c.drain)()
	defer context.AfterFunc(work, func() { _ = nc.Close() })()
	c.serve()
}

// peerOf returns the remote address of nc; invalid if nc has no IP address, as
// in-memory connections.
func peerOf(nc net.Conn) netip.AddrPort {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// dateLine is the value of the Date header during one second.
type dateLine struct {
	second int64
	text   string
}

// appendDate appends the Date header value for now.
func (s *Server) appendDate(dst []byte, now time.Time) []byte {
	line, second := s.date.Load(), now.Unix()
	if line == nil || line.second != second {
		line = &dateLine{second, now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}
		s.date.Store(line)
	}
	return append(dst, line.text...)
}
