// Package faulttest breaks connections on purpose, for tests. A [Network] is in memory
// and works in bubbles of testing/synctest, where a minute of a black hole takes no
// time; a [Proxy] stands before a server on loopback.
//
// What is lost on a broken way is held back and arrives when the way is healed, as TCP
// would have it. All types are safe for concurrent use.
package faulttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is how a way is broken.
type Fault uint8

// The faults.
const (
	// Healthy lets all pass.
	Healthy Fault = iota
	// Refused breaks what is open and refuses what is new.
	Refused
	// BlackHole lets nothing pass either way, and new connections hang.
	BlackHole
	// HalfOpen lets what the client says pass, and nothing back; connections open.
	HalfOpen
)

// way is the way to one server.
type way struct {
	mu      sync.Mutex
	fault   Fault
	delay   time.Duration // of each piece from the server
	changed chan struct{} // closed when fault changes
	open    map[*connection]struct{}
	dials   int
	relays  sync.WaitGroup
}

func newWay() *way {
	return &way{changed: make(chan struct{}), open: make(map[*connection]struct{})}
}

func (w *way) set(f Fault) {
	w.mu.Lock()
	w.fault = f
	close(w.changed)
	w.changed = make(chan struct{})
	var broken []*connection
	if f == Refused {
		for c := range w.open {
			broken = append(broken, c)
		}
	}
	w.mu.Unlock()
	for _, c := range broken {
		c.close()
	}
}

// state returns the fault and what is closed when it changes.
func (w *way) state() (Fault, time.Duration, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault, w.delay, w.changed
}

// connection is one connection through a way: the ends that face the client and the
// server.
type connection struct {
	way            *way
	client, server net.Conn
	once           sync.Once
	closed         chan struct{}
}

func (c *connection) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.client.Close()
		_ = c.server.Close()
		c.way.mu.Lock()
		delete(c.way.open, c)
		c.way.mu.Unlock()
	})
}

// join connects two ends until one of them or the way breaks.
func (w *way) join(client, server net.Conn) {
	c := &connection{way: w, client: client, server: server, closed: make(chan struct{})}
	w.mu.Lock()
	w.open[c] = struct{}{}
	w.mu.Unlock()
	w.relays.Go(func() { c.relay(server, client, func(f Fault) bool { return f == BlackHole }, false) })
	w.relays.Go(func() { c.relay(client, server, func(f Fault) bool { return f != Healthy }, true) })
}

// buffered is how many pieces a way holds back before the sender has to wait.
const buffered = 64

// relay moves what one end says to the other, while the way is not held up.
func (c *connection) relay(to, from net.Conn, held func(Fault) bool, slow bool) {
	pieces := make(chan []byte, buffered)
	c.way.relays.Go(func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				select {
				case pieces <- b[:n]:
				case <-c.closed:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	defer c.close()
	for b := range pieces {
		if !c.pass(held, slow) {
			return
		}
		if _, err := to.Write(b); err != nil {
			return
		}
	}
	c.pass(held, false) // that the peer is gone is not seen through a black hole
}

// pass waits until the way is open, and reports false when the connection is not.
func (c *connection) pass(held func(Fault) bool, slow bool) bool {
	for {
		fault, delay, changed := c.way.state()
		if !held(fault) {
			if !slow || delay == 0 {
				return true
			}
			select {
			case <-time.After(delay):
				return true
			case <-c.closed:
				return false
			}
		}
		select {
		case <-changed:
		case <-c.closed:
			return false
		}
	}
}

// Network is a network in memory.
type Network struct {
	mu        sync.Mutex
	ways      map[string]*way
	listeners map[string]*listener
}

// NewNetwork returns a network without servers. Connections end with the test.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	n := &Network{ways: make(map[string]*way), listeners: make(map[string]*listener)}
	t.Cleanup(n.close)
	return n
}

func (n *Network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.ways {
		w.set(Refused)
	}
	for _, w := range n.ways {
		w.relays.Wait()
	}
}

func (n *Network) way(address string) *way {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.ways[address]
	if w == nil {
		w = newWay()
		n.ways[address] = w
	}
	return w
}

// Set breaks the way to an address, or heals it.
func (n *Network) Set(address string, f Fault) { n.way(address).set(f) }

// Slow makes each piece that comes from an address late.
func (n *Network) Slow(address string, d time.Duration) {
	w := n.way(address)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Dials returns how often an address was dialled.
func (n *Network) Dials(address string) int {
	w := n.way(address)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials
}

// Listen returns a listener at an address, host:port. While there is none, the address
// refuses.
func (n *Network) Listen(address string) net.Listener {
	l := &listener{network: n, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

var errRefused = errors.New("connection refused")

// Dial connects to an address.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	w := n.way(address)
	w.mu.Lock()
	w.dials++
	w.mu.Unlock()
	for {
		fault, _, changed := w.state()
		if fault != BlackHole {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if fault, _, _ := w.state(); fault == Refused || l == nil {
		return nil, fmt.Errorf("dial %s: %w", address, errRefused)
	}
	user, client := net.Pipe()
	server, host := net.Pipe()
	select {
	case l.conns <- &addressed{host, address}:
		w.join(client, server)
		return &addressed{user, address}, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", address, errRefused)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressed is a connection that says where it leads.
type addressed struct {
	net.Conn
	address string
}

func (a *addressed) RemoteAddr() net.Addr { return address(a.address) }
func (a *addressed) LocalAddr() net.Addr  { return address("192.0.2.1:40000") }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// listener is a listener of a network.
type listener struct {
	network *Network
	address string
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		if l.network.listeners[l.address] == l {
			delete(l.network.listeners, l.address)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.address) }

// Proxy stands before a server on loopback.
type Proxy struct {
	way    *way
	listen net.Listener

	mu     sync.Mutex
	target string
}

// NewProxy returns a proxy before a target, host:port. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{way: newWay(), listen: l, target: target}
	p.way.relays.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.way.set(Refused)
		p.way.relays.Wait()
	})
	return p
}

// Addr returns host:port of the proxy.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// Target makes the proxy lead somewhere else from now on.
func (p *Proxy) Target(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = address
}

// Set breaks the way, or heals it. A proxy accepts what it refuses and breaks it at
// once.
func (p *Proxy) Set(f Fault) { p.way.set(f) }

// Slow makes each piece that comes from the server late.
func (p *Proxy) Slow(d time.Duration) {
	p.way.mu.Lock()
	defer p.way.mu.Unlock()
	p.way.delay = d
}

// Dials returns how often the proxy was dialled.
func (p *Proxy) Dials() int {
	p.way.mu.Lock()
	defer p.way.mu.Unlock()
	return p.way.dials
}

func (p *Proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		p.way.mu.Lock()
		p.way.dials++
		fault := p.way.fault
		p.way.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil || fault == Refused {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.way.join(client, server)
	}
}
