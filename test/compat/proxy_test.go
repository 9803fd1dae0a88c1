package compat

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A proxy stands between an SDK and a server, on both ports, and does what networks
// do: it ends connections, holds them up and slows them down. It never loses or
// changes a byte, for TCP does not either.
type proxy struct {
	addr string // what the SDK is told
	stop chan struct{}

	mu        sync.Mutex
	listeners []net.Listener
	targets   []string // of the listeners
	links     map[*link]bool
	held      bool          // new links are held, too
	latency   time.Duration // of new links, each way
	piece     int           // how much new links write at once; 0 means as it comes
	pumps     sync.WaitGroup
}

// between starts a proxy to a server that runs until the test ends.
func between(t *testing.T, s *server) *proxy {
	t.Helper()
	host, port := split(t, s.addr)
	p := &proxy{
		stop: make(chan struct{}), links: map[*link]bool{},
		targets: []string{s.addr, net.JoinHostPort(host, strconv.Itoa(port+grpcOffset))},
	}
	var err error
	for range 10 { // a free port may be taken before it is listened on
		p.addr = freeAddr(t)
		if err = p.listen(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(p.stop)
		p.close()
		p.cut()
		p.pumps.Wait()
	})
	return p
}

// split returns the parts of ip:port.
func split(t *testing.T, addr string) (host string, port int) {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	return host, port
}

// open lets new connections come.
func (p *proxy) open(t *testing.T) {
	t.Helper()
	if err := p.listen(); err != nil {
		t.Fatal(err)
	}
}

// listen listens on the ports of the proxy, or on none.
func (p *proxy) listen() error {
	host, text, err := net.SplitHostPort(p.addr)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	for i, target := range p.targets {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port+i*grpcOffset)))
		if err != nil {
			p.close()
			return err
		}
		p.mu.Lock()
		p.listeners = append(p.listeners, l)
		p.mu.Unlock()
		p.pumps.Go(func() { p.accept(l, target) })
	}
	return nil
}

// close refuses new connections.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.listeners = nil
}

func (p *proxy) accept(l net.Listener, target string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return // closed
		}
		out, err := net.Dial("tcp", target)
		if err != nil {
			reset(in)
			continue
		}
		p.join(in, out)
	}
}

// join forwards between two connections until both directions have ended.
func (p *proxy) join(client, server net.Conn) {
	p.mu.Lock()
	l := &link{client: client, server: server, latency: p.latency, piece: p.piece, over: make(chan struct{})}
	l.hold(p.held)
	p.links[l] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, client) })
	both.Go(func() { l.pump(client, server) })
	p.pumps.Go(func() {
		both.Wait()
		l.end()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
}

// each does something to all present links.
func (p *proxy) each(do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
}

// cut resets all connections, at both ends.
func (p *proxy) cut() { p.each((*link).end) }

// freeze leaves all present connections open, and nothing passes on them any more,
// not even their end. New ones work.
func (p *proxy) freeze() { p.each(func(l *link) { l.hold(true) }) }

// part does so to new connections, too, or ends it: what was held up then passes.
func (p *proxy) part(held bool) {
	p.mu.Lock()
	p.held = held
	p.mu.Unlock()
	p.each(func(l *link) { l.hold(held) })
}

// slowDown has new connections take so long each way, and pass so many bytes at
// once.
func (p *proxy) slowDown(latency time.Duration, piece int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency, p.piece = latency, piece
}

// A link is a connection through the proxy.
type link struct {
	client, server net.Conn
	latency        time.Duration
	piece          int
	once           sync.Once
	over           chan struct{}

	mu   sync.Mutex
	gate chan struct{} // closed when it opens; nil while nothing is held
}

// end resets the connections.
func (l *link) end() {
	l.once.Do(func() {
		close(l.over)
		reset(l.client)
		reset(l.server)
	})
}

// reset closes a connection so that the other end is told at once.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (l *link) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case held && l.gate == nil:
		l.gate = make(chan struct{})
	case !held && l.gate != nil:
		close(l.gate)
		l.gate = nil
	}
}

// passes waits until nothing is held, and reports whether the link still lives.
func (l *link) passes() bool {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-l.over:
		return false
	}
}

// A parcel is what was read at once, and how reading ended.
type parcel struct {
	at    time.Time
	bytes []byte
	err   error
}

// inFlight bounds what is on its way in one direction, in parcels of parcelSize
// bytes at most; more waits at its source.
const (
	inFlight   = 256
	parcelSize = 16 << 10
)

// pump forwards one direction until it ends.
func (l *link) pump(to, from net.Conn) {
	parcels := make(chan parcel, inFlight)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		defer close(parcels)
		for {
			buf := make([]byte, parcelSize)
			n, err := from.Read(buf)
			select {
			case parcels <- parcel{time.Now(), buf[:n], err}:
			case <-l.over:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for p := range parcels {
		if !l.arrives(p) || !l.deliver(to, p) {
			l.end()
			return
		}
	}
}

// arrives waits for as long as a parcel is on its way.
func (l *link) arrives(p parcel) bool {
	timer := time.NewTimer(l.latency - time.Since(p.at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.passes()
	case <-l.over:
		return false
	}
}

// deliver writes a parcel, and the end of a direction that ended well. It reports
// whether the link goes on.
func (l *link) deliver(to net.Conn, p parcel) bool {
	for rest := p.bytes; len(rest) > 0; {
		n := len(rest)
		if l.piece > 0 {
			n = min(n, l.piece)
		}
		if _, err := to.Write(rest[:n]); err != nil {
			return false
		}
		rest = rest[n:]
	}
	switch {
	case p.err == nil:
		return true
	case errors.Is(p.err, io.EOF):
		half, ok := to.(*net.TCPConn)
		return ok && half.CloseWrite() == nil
	default:
		return false
	}
}
