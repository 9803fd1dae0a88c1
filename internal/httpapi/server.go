package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
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
// apart by their first bytes; TLS and the PROXY header are the caller's. One
// connection too many is told so. When ctx ends an idle connection is closed, and a
// running request gets Config.DrainTimeout.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn, prefix []byte) {
	work, finish := s.workContext(ctx)
	defer finish()
	peer := peerOf(nc)
	if r := s.admission.Admit(peer.Addr()); r != nil {
		s.refuse(nc, r)
		return
	}
	defer s.admission.Release(peer.Addr())
	defer func() { _ = nc.Close() }()

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
