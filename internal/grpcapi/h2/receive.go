package h2

import (
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// maxWindow is the largest window of flow control (RFC 9113, 6.9.1).
const maxWindow = 1<<31 - 1

// drainPing is the ping behind a GOAWAY: its answer says that the client has seen
// both.
var drainPing = [8]byte{'r', 'o', 'l', 'l', 'c', 'a', 'l', 'l'}

// handle handles a frame. An error ends the connection.
func (c *conn) handle(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.onData(f)
	case *http2.HeadersFrame:
		return c.onHeaders(f)
	case *http2.ContinuationFrame:
		return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.WindowUpdateFrame:
		return c.onWindowUpdate(f)
	case *http2.PingFrame:
		return c.onPing(f)
	case *http2.SettingsFrame:
		return c.onSettings(f)
	case *http2.RSTStreamFrame:
		return c.onReset(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return violation("a stream depends on itself")
		}
		return c.charge(costOfFrame)
	case *http2.PushPromiseFrame:
		return violation("a client cannot push")
	default: // GOAWAY, which means nothing for streams that are open, and unknown ones
		return c.charge(costOfFrame)
	}
}

func (c *conn) onPing(f *http2.PingFrame) error {
	if err := c.charge(costOfFrame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !f.IsAck():
		out := c.buffer()
		out.b = appendPing(out.b, true, f.Data)
	case f.Data == drainPing && c.ending != nil && !c.saidBye:
		c.saidBye = true
		out := c.buffer()
		out.b = appendGoAway(out.b, c.lastID, http2.ErrCodeNo, c.ending.Message)
	}
	return nil
}

func (c *conn) onSettings(f *http2.SettingsFrame) error {
	if err := c.charge(costOfFrame + f.NumSettings()); err != nil {
		return err
	}
	if f.IsAck() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Frames are never larger than the smallest maximum, and headers use no table.
	for n := range f.NumSettings() {
		s := f.Setting(n)
		if err := s.Valid(); err != nil {
			return violation(fmt.Sprintf("a setting is not valid: %v", s))
		}
		if s.ID == http2.SettingInitialWindowSize {
			if err := c.resize(int64(s.Val)); err != nil {
				return err
			}
		}
	}
	out := c.buffer()
	out.b = appendSettingsAck(out.b)
	return nil
}

// resize changes the window of all streams, open ones included. The caller holds
// c.mu.
func (c *conn) resize(window int64) error {
	change := window - c.streamWindow
	c.streamWindow = window
	for _, st := range c.streams {
		if st.window += change; st.window > maxWindow {
			return &connError{http2.ErrCodeFlowControl, "a window is too large"}
		}
		c.unblock(st)
	}
	return nil
}

// unblock lets a stream send, whose window may have kept it from that. The caller
// holds c.mu.
func (c *conn) unblock(st *stream) {
	if st.msg != nil || st.woken {
		c.enqueue(st)
	}
}

func (c *conn) onWindowUpdate(f *http2.WindowUpdateFrame) error {
	if err := c.charge(costOfFrame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(f.Increment)
	if f.StreamID == 0 {
		blocked := c.window <= 0
		if c.window += n; c.window > maxWindow {
			return &connError{http2.ErrCodeFlowControl, "the window is too large"}
		}
		for i := 0; blocked && i < len(c.streams); i++ {
			c.unblock(c.streams[i])
		}
		return nil
	}
	if f.StreamID > c.lastID {
		return violation("WINDOW_UPDATE of a stream that is not open")
	}
	i, found := c.find(f.StreamID)
	if !found {
		return nil // it has ended meanwhile
	}
	st := c.streams[i]
	if st.window += n; st.window > maxWindow {
		c.resetLocked(st.id, http2.ErrCodeFlowControl)
		return nil
	}
	c.unblock(st)
	return nil
}

func (c *conn) onReset(f *http2.RSTStreamFrame) error {
	if f.StreamID > c.lastID {
		return violation("RST_STREAM of a stream that is not open")
	}
	if err := c.charge(costOfReset); err != nil {
		return err
	}
	if st := c.stream(f.StreamID); st != nil {
		c.mu.Lock()
		c.close(st)
		c.mu.Unlock()
		st.drop()
	}
	return nil
}

// stream returns an open stream; nil when there is none.
func (c *conn) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, found := c.find(id); found {
		return c.streams[n]
	}
	return nil
}

// reset ends a stream with RST_STREAM.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetLocked(id, code)
}

// resetLocked is reset for a caller that holds c.mu.
func (c *conn) resetLocked(id uint32, code http2.ErrCode) {
	out := c.buffer()
	out.b = appendReset(out.b, id, code)
	if n, found := c.find(id); found {
		st := c.streams[n]
		c.close(st)
		st.drop()
	}
}

func (c *conn) onHeaders(f *http2.HeadersFrame) error {
	if err := c.charge(costOfFrame); err != nil {
		return err
	}
	h := &c.reader.head
	h.begin(f.StreamID, f.StreamEnded())
	h.malformed = f.HasPriority() && f.Priority.StreamDep == f.StreamID
	c.decoder.SetEmitEnabled(true)
	return c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
}

// fragment takes the next part of a header block.
func (c *conn) fragment(b []byte, last bool) error {
	if err := c.charge(costOfFrame); err != nil {
		return err
	}
	return c.decode(b, last)
}

// decode decodes a part of a header block, and handles the headers when it was the
// last one.
func (c *conn) decode(b []byte, last bool) error {
	h := &c.reader.head
	if h.encoded += len(b); h.encoded > maxHeaders {
		return &connError{http2.ErrCodeEnhanceYourCalm, "a header block is too large"}
	}
	if _, err := c.decoder.Write(b); err != nil {
		return &connError{http2.ErrCodeCompression, err.Error()}
	}
	if !last {
		return nil
	}
	h.open = false
	if err := c.decoder.Close(); err != nil {
		return &connError{http2.ErrCodeCompression, err.Error()}
	}
	return c.headers(h)
}

// field takes a field from the decoder.
func (c *conn) field(f hpack.HeaderField) {
	if !c.reader.head.add(&f) {
		c.decoder.SetEmitEnabled(false)
	}
}

// headers handles a header list: it opens a stream or ends the client's half of
// one.
func (c *conn) headers(h *head) error {
	if h.id%2 == 0 {
		return violation("a client's streams have odd IDs")
	}
	if h.id > c.lastID {
		c.lastID = h.id
		c.open(h)
		return nil
	}
	st := c.stream(h.id)
	switch {
	case st == nil:
		return &connError{http2.ErrCodeStreamClosed, "HEADERS of a stream that is closed"}
	case st.halfway:
		c.reset(h.id, http2.ErrCodeStreamClosed)
	case !h.endStream || h.malformed || h.method+h.path+h.scheme+h.authority != "":
		c.reset(h.id, http2.ErrCodeProtocol)
	case st.content > 0:
		c.reset(h.id, http2.ErrCodeProtocol)
	default:
		c.receive(st, nil, true)
	}
	return nil
}

func (c *conn) onData(f *http2.DataFrame) error {
	data, n := f.Data(), int(f.Length)
	if c.unacked += n; c.unacked > recvWindow {
		return &connError{http2.ErrCodeFlowControl, "more DATA than the window has room for"}
	}
	st := c.stream(f.StreamID)
	if st == nil && f.StreamID > c.lastID {
		return violation("DATA of a stream that is not open")
	}
	if n < fullFrame && !f.StreamEnded() {
		if err := c.charge(costOfFrame); err != nil {
			return err
		}
	}
	if c.unacked > recvWindow/2 {
		c.enlarge(0, &c.unacked)
	}
	switch {
	case st == nil:
		if err := c.charge(costOfFrame); err != nil {
			return err
		}
		c.reset(f.StreamID, http2.ErrCodeStreamClosed)
		return nil
	case st.halfway:
		c.reset(f.StreamID, http2.ErrCodeStreamClosed)
		return nil
	}
	if st.unacked += n; st.unacked > recvWindow {
		c.reset(f.StreamID, http2.ErrCodeFlowControl)
		return nil
	}
	if st.unacked > recvWindow/2 && !f.StreamEnded() {
		c.enlarge(st.id, &st.unacked)
	}
	if st.content >= 0 {
		if st.content -= int64(len(data)); st.content < 0 || f.StreamEnded() && st.content > 0 {
			c.reset(f.StreamID, http2.ErrCodeProtocol)
			return nil
		}
	}
	c.receive(st, data, f.StreamEnded())
	return nil
}

// enlarge gives the client as much window as it has used.
func (c *conn) enlarge(id uint32, unacked *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.buffer()
	out.b = appendWindowUpdate(out.b, id, *unacked)
	*unacked = 0
}

// receive takes what a client sends on a stream; end: it is the last.
func (c *conn) receive(st *stream, p []byte, end bool) {
	if end {
		c.mu.Lock()
		st.halfway = true
		c.mu.Unlock()
	}
	c.messages(st, p)
	switch {
	case st.deaf:
	case end:
		c.halfClose(st)
	case st.asked:
		st.request = st.keep(st.request)
	}
}

// messages takes the messages that end in p.
func (c *conn) messages(st *stream, p []byte) {
	for len(p) > 0 && !st.deaf {
		m, rest, fault := st.next(p)
		p = rest
		switch {
		case fault != nil:
			c.fail(st, *fault)
		case m == nil:
		case st.method == bothWays:
			c.deliver(st, m)
			st.release()
		case st.asked:
			c.fail(st, transport.Status{Code: internal, Message: "more than one message for a method that takes one"})
		default:
			st.request, st.asked = m, true
		}
	}
}
