package h2

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// method is what a stream was opened for.
type method uint8

const (
	unaryCall method = iota
	bothWays
	healthCheck
	healthWatch
)

// unary reports whether one message of the client gets one answer.
func (m method) unary() bool { return m == unaryCall || m == healthCheck }

// stream is a call or a stream of both directions.
type stream struct {
	conn     *conn
	id       uint32
	method   method
	deadline time.Time // zero when there is none

	// Of the goroutine that reads.
	part    []byte // the message of which not all has come, or that was kept, with its prefix
	request []byte // of a method that takes one message: the one that has come
	asked   bool   // request has come
	deaf    bool   // nothing more of the client is wanted
	unacked int    // DATA for which the client has no new window yet
	content int64  // how much DATA must still come; -1 when none was announced

	// Guarded by conn.mu.
	reserved int                // of the memory of large messages
	behind   *stream            // behind it in the line of those that have something to send
	lined    bool               // in that line
	window   int64              // how much DATA the client takes
	msg      *message           // being sent
	since    int64              // when some of it was last sent, by the coarse clock
	status   []byte             // fields that end the stream, once nothing is being sent
	begun    bool               // the head of the answer was sent
	woken    bool               // the handler may have a message
	halfway  bool               // the client has said that nothing more comes
	closed   bool               // not in conn.streams any more
	over     bool               // the handler gets and gives nothing more
	busy     int                // calls of the handler that have not returned
	timer    *time.Timer        // ends a stream of both directions at its deadline
	cancel   context.CancelFunc // of a call in a goroutine

	// frames is the handler's end of a stream of both directions; nil while the
	// handler is being told of it. watch is that of a stream on the server's health.
	frames transport.Frames
	watch  *watch
}

// Wake implements transport.Stream.
func (st *stream) Wake() {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.over || st.closed {
		return
	}
	st.woken = true
	if st.frames != nil || st.watch != nil {
		c.enqueue(st)
		c.kick()
	}
}

// pullable reports whether the handler may be asked for a message. Who watches the
// health is told of the end even when the stream is ending. The caller holds
// conn.mu.
func (st *stream) pullable() bool {
	if !st.woken || st.msg != nil || st.closed {
		return false
	}
	return st.watch != nil || st.frames != nil && !st.over && st.status == nil
}

// pull asks the handler for a message. conn.mu is held, but not meanwhile. Only who
// has the turn to write pulls.
func (st *stream) pull() {
	c := st.conn
	st.woken = false
	st.busy++
	c.mu.Unlock()
	m := c.server.message()
	var more bool
	if st.watch != nil {
		more = st.watch.next(m)
	} else if more = st.frames.Next(&m.Message); more {
		m.encode()
	}
	c.mu.Lock()
	if more {
		st.woken = st.woken || !st.over
		c.give(st, m)
	} else {
		c.server.recycle(m)
	}
	c.leave(st)
}

// leave notes that a call of the handler has returned. The caller holds c.mu.
func (c *conn) leave(st *stream) {
	st.busy--
	if st.over && st.busy == 0 && st.frames != nil {
		c.after(st.frames.Ended)
	}
}

// over notes that the handler gets and gives nothing more of a stream, and has it
// told, when no call of it is under way. The caller holds c.mu.
func (c *conn) over(st *stream) {
	if st.over {
		return
	}
	st.over, st.woken = true, false
	if st.timer != nil {
		st.timer.Stop()
	}
	if st.watch != nil {
		c.server.health.remove(st)
	}
	if st.busy == 0 && st.frames != nil {
		c.after(st.frames.Ended)
	}
}

// close takes a stream off the connection. The caller holds c.mu.
func (c *conn) close(st *stream) {
	if st.closed {
		return
	}
	st.closed = true
	if n, found := c.find(st.id); found {
		c.streams = slices.Delete(c.streams, n, n+1)
	}
	if m := st.msg; m != nil {
		st.msg = nil
		c.discard(m)
	}
	if st.cancel != nil {
		st.cancel()
	}
	st.unreserve()
	c.over(st)
}
