package h2

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/socket"
)

// writers are a few goroutines that write to the connections on which something
// waits while nothing comes from their clients. Their queue holds a connection
// once, and so is bounded by the number of connections.
//
// A burst is the time in which their queue does not become empty, up to burstMost:
// a change of which many subscribers are told. Clients acknowledge each push, and to
// read that costs as much as to write the next push; so that all learn of a change
// before the acknowledgements of the first are looked at, reading gives way.
type writers struct {
	length atomic.Int32 // of the queue

	mu          sync.Mutex
	wake        sync.Cond // there is a connection in the queue, or it is closed
	first, last *conn
	closed      bool
	running     sync.WaitGroup

	burst uint32    // the number of this burst or the next one; never 0
	began time.Time // this burst; zero between two
	calm  sync.Cond // a burst has ended
}

const (
	// burstLength is from which length of the queue on reading gives way. Below it
	// what there is to write is written in about a millisecond.
	burstLength = 64
	// burstMost bounds for how long, so that who wrote more than an acknowledgement
	// is answered well within the 3 s that SDKs give a call.
	burstMost = 300 * time.Millisecond
)

func newWriters() *writers {
	ws := &writers{burst: 1}
	ws.wake.L, ws.calm.L = &ws.mu, &ws.mu
	return ws
}

// start starts n writers.
func (ws *writers) start(n int) {
	for range n {
		ws.running.Go(ws.run)
	}
}

// stop ends the writers when the queue is empty, and waits for them.
func (ws *writers) stop() {
	ws.mu.Lock()
	ws.closed = true
	ws.wake.Broadcast()
	ws.calm.Broadcast()
	ws.mu.Unlock()
	ws.running.Wait()
}

// put puts a connection into the queue. Its mutex is held, and taken before that of
// the queue.
func (ws *writers) put(c *conn) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.last == nil {
		ws.first = c
	} else {
		ws.last.behind = c
	}
	ws.last = c
	ws.length.Add(1)
	ws.wake.Signal()
}

// take waits for a connection; nil when there will be none.
func (ws *writers) take() *conn {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for ws.first == nil {
		ws.endBurst()
		if ws.closed {
			return nil
		}
		ws.wake.Wait()
	}
	c := ws.first
	if ws.first = c.behind; ws.first == nil {
		ws.last = nil
	}
	c.behind = nil
	ws.length.Add(-1)
	switch now := time.Now(); {
	case ws.began.IsZero():
		ws.began = now
	case now.Sub(ws.began) > burstMost:
		ws.endBurst()
		ws.began = now
	}
	c.burst = ws.burst
	return c
}

// endBurst lets those who gave way read. The caller holds ws.mu.
func (ws *writers) endBurst() {
	ws.began = time.Time{}
	if ws.burst++; ws.burst == 0 {
		ws.burst = 1
	}
	ws.calm.Broadcast()
}

// busy reports whether reading from c gives way: a burst goes on in which something
// was written to c, and many others wait for that.
func (ws *writers) busy(c *conn) bool {
	if ws.length.Load() < burstLength {
		return false
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.busyLocked(c)
}

// busyLocked is busy for a caller that holds ws.mu.
func (ws *writers) busyLocked(c *conn) bool {
	return c.burst == ws.burst && ws.length.Load() >= burstLength && !ws.closed
}

// giveWay waits until busy ends, for this burst at most: the next one may come to c
// before it is looked at. Nothing is held meanwhile that a writer may wait for, as the
// end of a burst is the writers' doing.
func (ws *writers) giveWay(c *conn) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for burst := ws.burst; burst == ws.burst && ws.busyLocked(c); {
		ws.calm.Wait()
	}
}

func (ws *writers) run() {
	w := newWriter()
	for c := ws.take(); c != nil; c = ws.take() {
		c.mu.Lock()
		c.queued = false
		if c.turn {
			c.mu.Unlock()
			continue
		}
		c.turn = true
		c.drain(w)
	}
}

// writer writes to sockets without waiting for them.
type writer struct {
	b   []byte
	n   int
	err error
	try func(fd uintptr) bool
}

func newWriter() *writer {
	w := &writer{}
	w.try = func(fd uintptr) bool {
		w.n, w.err = socket.WriteNow(int(fd), w.b)
		return true
	}
	return w
}

// write writes what the socket takes of b and returns the rest.
func (w *writer) write(raw syscall.RawConn, b []byte) (rest []byte, err error) {
	w.b = b
	err = raw.Write(w.try)
	w.b = nil
	if err != nil {
		return nil, err
	}
	return b[w.n:], w.err
}
