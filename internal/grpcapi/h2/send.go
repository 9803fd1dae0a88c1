package h2

import (
	"cmp"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// sending is the half of a connection that sends. It is guarded by conn.mu.
//
// One goroutine at a time has the turn to write: the one that reads, from when
// something has come until it waits again, else a writer, else a goroutine for a
// client whose socket is full. Who has it writes what waits until nothing does, and
// then lets everybody else's wait end. Everything that a handler is called for on
// the way, Next, Written and Ended, is called by who has the turn, without the
// lock.
type sending struct {
	out   *chunk // what waits to be written; nil when nothing does
	turn  bool
	since int64     // when the write that goes on began, by the coarse clock; 0: none does
	space sync.Cond // a chunk was written, or the connection has ended

	queued bool  // in the queue of the writers
	behind *conn // it there; guarded by the mutex of the queue

	streams       []*stream // the open ones, by ID
	line, lineEnd *stream   // the line of those that have something to send
	apart         int       // calls that run in goroutines, of closed streams too

	reserved int   // of the memory of large messages, by all streams
	loading  int64 // since when, or since when one of them is smaller, by the coarse clock

	window       int64 // how much DATA the client takes, of all streams
	streamWindow int64 // the same of a new stream
	blockSent    bool
	earned       int   // see guard
	pinged       int64 // when a ping was sent that nothing has come after; 0: none was

	ending     *transport.Status // set by Close
	saidBye    bool              // the last GOAWAY was sent
	halfClosed bool              // and nothing comes after it
	err        error             // of a write
	closed     bool
	closer     *time.Timer
}

// buffer returns what waits to be written, for more. The caller holds c.mu.
func (c *conn) buffer() *chunk {
	if c.out == nil {
		c.out = c.server.chunk()
	}
	return c.out
}

// after has a function called once what waits was written, or never will be. The
// caller holds c.mu.
func (c *conn) after(f func()) {
	out := c.buffer()
	out.after = append(out.after, f)
	c.kick()
}

// discard takes back a message of which nothing more is sent. The caller holds
// c.mu.
func (c *conn) discard(m *message) {
	if m.Written != nil {
		c.after(m.Written)
	}
	c.server.recycle(m)
}

// find returns where a stream is among the open ones, or would be. The caller holds
// c.mu.
func (c *conn) find(id uint32) (n int, found bool) {
	return slices.BinarySearchFunc(c.streams, id, func(st *stream, id uint32) int { return cmp.Compare(st.id, id) })
}

// enqueue puts a stream at the end of the line of those that have something to
// send. The caller holds c.mu.
func (c *conn) enqueue(st *stream) {
	if st.lined || st.closed {
		return
	}
	st.lined = true
	if c.lineEnd == nil {
		c.line = st
	} else {
		c.lineEnd.behind = st
	}
	c.lineEnd = st
}

// dequeue takes the first stream out of the line, which is not empty. The caller
// holds c.mu.
func (c *conn) dequeue() *stream {
	st := c.line
	if c.line = st.behind; c.line == nil {
		c.lineEnd = nil
	}
	st.behind, st.lined = nil, false
	return st
}

// kick has what waits written, if nobody is at it. The caller holds c.mu.
func (c *conn) kick() {
	if !c.turn && !c.queued {
		c.queued = true
		c.server.writers.put(c)
	}
}

// give has a message sent. The caller holds c.mu.
func (c *conn) give(st *stream, m *message) {
	if st.closed {
		c.discard(m)
		return
	}
	st.msg, st.since = m, c.server.now()
}

// conclude ends a stream with a status, after the message that is being sent. The
// caller holds c.mu.
func (c *conn) conclude(st *stream, s transport.Status) {
	if st.closed || st.status != nil {
		return
	}
	st.status = appendStatus(nil, s)
	c.enqueue(st)
	c.kick()
}

// gather moves what may be sent into the chunk that is written next, and reports
// whether there is one. c.mu is held, but not while messages are pulled.
func (c *conn) gather() bool {
	for c.line != nil && c.err == nil && !c.closed && (c.out == nil || len(c.out.b) < chunkBytes) {
		st := c.dequeue()
		if st.pullable() && c.window > 0 && st.window > 0 {
			st.pull()
		}
		if c.advance(st) {
			c.enqueue(st)
		}
	}
	return c.out != nil
}

// advance appends what a stream may send now, one frame of DATA at most. It reports
// whether there is more for which the windows have room. The caller holds c.mu.
func (c *conn) advance(st *stream) (more bool) {
	if m := st.msg; m != nil {
		n := int(min(int64(min(m.left(), maxFrame)), st.window, c.window))
		if n <= 0 {
			return false
		}
		c.begin(st)
		out := c.buffer()
		out.b = appendFrame(out.b, http2.FrameData, 0, st.id, n)
		out.b = m.appendNext(out.b, n)
		st.window -= int64(n)
		c.window -= int64(n)
		st.since = c.server.now()
		if n >= fullFrame {
			c.earn()
		}
		if m.left() > 0 {
			return true
		}
		c.earn()
		st.msg = nil
		c.discard(m)
	}
	if st.closed {
		return false
	}
	if st.pullable() {
		return c.window > 0 && st.window > 0
	}
	if st.status != nil {
		c.finish(st)
	}
	return false
}

// begin appends the head of an answer, unless that was sent. The caller holds c.mu.
func (c *conn) begin(st *stream) {
	if st.begun {
		return
	}
	st.begun = true
	c.appendBlock(st.id, 0, func(b []byte) []byte { return append(b, c.server.answerHead...) })
}

// finish appends the end of an answer and closes the stream. A client that has not
// said all is told to stop. The caller holds c.mu.
func (c *conn) finish(st *stream) {
	c.appendBlock(st.id, http2.FlagHeadersEndStream, func(b []byte) []byte {
		if !st.begun {
			b = append(b, c.server.answerHead...)
		}
		return append(b, st.status...)
	})
	if !st.halfway {
		out := c.buffer()
		out.b = appendReset(out.b, st.id, http2.ErrCodeNo)
	}
	c.close(st)
}

// appendBlock appends HEADERS with the block that f appends. The caller holds c.mu.
func (c *conn) appendBlock(id uint32, flags http2.Flags, f func([]byte) []byte) {
	out := c.buffer()
	start := len(out.b)
	out.b = appendFrame(out.b, http2.FrameHeaders, flags|http2.FlagHeadersEndHeaders, id, 0)
	if !c.blockSent {
		c.blockSent = true
		out.b = append(out.b, tableSizeZero)
	}
	out.b = f(out.b)
	size := len(out.b) - start - frameHeaderLen
	out.b[start], out.b[start+1], out.b[start+2] = byte(size>>16), byte(size>>8), byte(size)
}

// takeTurn gives the goroutine that reads the turn to write, if nobody has it.
func (c *conn) takeTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.turn {
		c.turn, c.mine = true, true
	}
}

// flush has the goroutine that reads write what waits, and give the turn up. If
// another has it, only the wait for room in the chunk is left. Both block as long
// as the client does not read, within the limit.
func (c *conn) flush() error {
	c.mu.Lock()
	if c.turn && !c.mine {
		for c.turn && !c.closed && c.out != nil && len(c.out.b) > chunkBytes {
			c.space.Wait()
		}
		defer c.mu.Unlock()
		return c.err
	}
	c.turn, c.mine = true, false
	c.drain(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// flushLarge flushes when much waits, and keeps the turn.
func (c *conn) flushLarge() error {
	c.mu.Lock()
	large := c.out != nil && len(c.out.b) >= chunkBytes
	c.mu.Unlock()
	if !large {
		return nil
	}
	err := c.flush()
	c.takeTurn()
	return err
}

// drain writes until nothing waits, and gives the turn up. A writer does not block;
// in the place of one that would, a goroutine goes on. c.mu is held on entry and
// not on return.
func (c *conn) drain(w *writer) {
	for {
		for c.gather() {
			out := c.out
			c.out, c.since = nil, c.server.now()
			c.mu.Unlock()
			rest, err := c.write(out.b, w)
			if err == nil && len(rest) > 0 {
				if c.hand(out, rest) {
					return
				}
				err = net.ErrClosed
			}
			c.wrote(out, err)
		}
		if !c.parting() {
			break
		}
	}
	c.turn = false
	c.mu.Unlock()
}

// hand has a goroutine go on with the rest of a chunk, unless the connection has
// ended: the server waits for such goroutines after that.
func (c *conn) hand(out *chunk, rest []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.server.helpers.Go(func() { c.goOn(out, rest) })
	}
	return !c.closed
}

// goOn writes the rest of a chunk, and what has come to wait meanwhile.
func (c *conn) goOn(out *chunk, rest []byte) {
	_, err := c.nc.Write(rest)
	c.wrote(out, err)
	c.drain(nil)
}

// write writes b, a writer only as much of it as the socket takes. The rest is
// returned.
func (c *conn) write(b []byte, w *writer) (rest []byte, err error) {
	switch {
	case len(b) == 0:
		return nil, nil
	case w == nil:
		_, err = c.nc.Write(b)
		return nil, err
	case c.raw == nil:
		return b, nil
	default:
		return w.write(c.raw, b)
	}
}

// wrote says that a chunk was written or could not be. c.mu is not held on entry,
// but on return.
func (c *conn) wrote(out *chunk, err error) {
	c.server.finish(out)
	if err != nil {
		_ = c.nc.Close() // which ends the reading
	}
	c.mu.Lock()
	c.since = 0
	if c.err == nil {
		c.err = err
	}
	c.space.Broadcast()
}

// parting half-closes the connection when all has been said, and reports whether
// more may have come to wait meanwhile. c.mu is held, but not meanwhile.
func (c *conn) parting() bool {
	if !c.saidBye || c.halfClosed || c.closed || len(c.streams) > 0 {
		return false
	}
	c.halfClosed = true
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok {
		return false
	}
	c.mu.Unlock()
	_ = half.CloseWrite()
	c.mu.Lock()
	return true
}
