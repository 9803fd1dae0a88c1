package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/http2"
)

const (
	frameHeader = 9
	// messageHeader goes before each message: a byte that says that it is not
	// compressed, and its length.
	messageHeader = 5
	// maxBacklog bounds the messages of [Conn.Send] that wait until the server takes
	// more, in bytes. Beyond that the connection is given up, as it is when the request
	// of a call waits for that as long as a call may take.
	maxBacklog = 1 << 20
)

// Errors of a connection.
var (
	ErrClosed  = errors.New("the connection is closed")
	ErrTimeout = errors.New("no answer in time")

	errBacklog = errors.New("the server does not take what is sent")
)

func appendFrameHeader(b []byte, t http2.FrameType, f http2.Flags, stream uint32, size int) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(t), byte(f))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendFrame(b []byte, t http2.FrameType, f http2.Flags, stream uint32, payload []byte) []byte {
	return append(appendFrameHeader(b, t, f, stream, len(payload)), payload...)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendFrameHeader(b, http2.FrameSettings, 0, 0, 6*len(settings))
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

func appendWindowUpdate(b []byte, stream uint32, n int64) []byte {
	b = appendFrameHeader(b, http2.FrameWindowUpdate, 0, stream, 4)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendMessageHeader(b []byte, size int) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(size))
}

// flush writes what was laid out. The caller holds mu.
func (c *Conn) flush() error {
	if c.failure != nil {
		return c.failure
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		c.fail(err)
	}
	return c.failure
}

// fail ends the connection. The caller holds mu. The reader does the rest.
func (c *Conn) fail(err error) {
	if c.failure == nil {
		if why := c.aborted.Load(); why != nil { // err is what came of that
			err = *why
		}
		c.failure = err
		_ = c.nc.Close()
		c.room.Broadcast()
	}
}

// Call makes a unary call and returns its answer, which is valid until the next call.
func (c *Conn) Call(message []byte) ([]byte, error) {
	c.callMu.Lock()
	defer c.callMu.Unlock()
	if err := c.begin(message); err != nil {
		return nil, err
	}
	c.timer.Reset(c.timeout)
	select {
	case <-c.answered:
		c.timer.Stop()
		return c.call.answer, c.call.err
	case <-c.timer.C:
		return nil, c.abandon()
	}
}

// begin sends the request of a call.
func (c *Conn) begin(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure
	}
	c.call = call{id: c.nextID, answer: c.call.answer[:0]}
	c.callWindow = c.initialWindow
	block := c.blocks.nextCall
	if c.nextID == firstCall {
		block = c.blocks.firstCall
	}
	if c.plain {
		block = c.blocks.plainCall
	}
	c.nextID += 2
	c.out = appendFrame(c.out, http2.FrameHeaders, http2.FlagHeadersEndHeaders, c.call.id, block)
	err := c.writeMessage(c.call.id, &c.callWindow, message)
	if err != nil {
		c.call.id = 0
	}
	return err
}

// writeMessage sends a message as the server's windows allow, and waits where they
// do not. It ends the stream of a call. The caller holds mu.
func (c *Conn) writeMessage(stream uint32, window *int64, message []byte) error {
	head := appendMessageHeader(make([]byte, 0, messageHeader), len(message))
	for left := len(head) + len(message); left > 0; {
		n := min(int64(left), c.window, *window, int64(c.maxFrame))
		if n <= 0 {
			if err := c.flush(); err != nil {
				return err
			}
			if err := c.waitForRoom(); err != nil || stream != streamID && c.call.done {
				return err // the answer may be there before the request was taken in full
			}
			continue
		}
		left -= int(n)
		var flags http2.Flags
		if left == 0 && stream != streamID {
			flags = http2.FlagDataEndStream
		}
		c.window -= n
		*window -= n
		c.out = appendFrameHeader(c.out, http2.FrameData, flags, stream, int(n))
		first := min(int(n), len(head))
		c.out = append(c.out, head[:first]...)
		c.out = append(c.out, message[:int(n)-first]...)
		head, message = head[first:], message[int(n)-first:]
	}
	return c.flush()
}

// waitForRoom waits until the server takes more or ends the call, and gives the
// connection up when it does neither in time. The caller holds mu.
func (c *Conn) waitForRoom() error {
	late := time.AfterFunc(c.timeout, func() { c.abort(errBacklog) })
	defer late.Stop()
	c.room.Wait()
	return c.failure
}

// abandon ends a call that was not answered in time, unless it was just now.
func (c *Conn) abandon() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.call.done {
		<-c.answered
		return c.call.err
	}
	c.out = appendFrameHeader(c.out, http2.FrameRSTStream, 0, c.call.id, 4)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(http2.ErrCodeCancel))
	c.call.id = 0
	if err := c.flush(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrTimeout, c.timeout)
}

// Send sends a message on the stream. It does not wait for the server to take it: up
// to a mebibyte is kept until then.
func (c *Conn) Send(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure
	}
	size := int64(messageHeader + len(message))
	if len(c.backlog) == 0 && size <= min(c.window, c.streamWindow, int64(c.maxFrame)) {
		return c.writeMessage(streamID, &c.streamWindow, message)
	}
	if len(c.backlog)+int(size) > maxBacklog {
		c.fail(errBacklog)
		return errBacklog
	}
	c.backlog = append(appendMessageHeader(c.backlog, len(message)), message...)
	return c.sendBacklog()
}

// sendBacklog sends of the backlog what the windows allow. The caller holds mu.
func (c *Conn) sendBacklog() error {
	for len(c.backlog) > 0 {
		n := min(int64(len(c.backlog)), c.window, c.streamWindow, int64(c.maxFrame))
		if n <= 0 {
			break
		}
		c.out = appendFrame(c.out, http2.FrameData, 0, streamID, c.backlog[:n])
		c.backlog = append(c.backlog[:0], c.backlog[n:]...)
		c.window -= n
		c.streamWindow -= n
	}
	if len(c.out) == 0 {
		return nil
	}
	return c.flush()
}

// Err returns why the connection has ended, nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// Close ends the connection, and returns when its goroutine has ended. It must not
// be called by a [Handler].
func (c *Conn) Close() {
	c.Abort()
	<-c.ended
}

// Abort ends the connection without waiting for its goroutine.
func (c *Conn) Abort() { c.abort(ErrClosed) }

func (c *Conn) abort(why error) {
	c.aborted.CompareAndSwap(nil, &why)
	_ = c.nc.Close() // before mu, which is held by who writes to a server that does not read
	c.mu.Lock()
	c.fail(why)
	c.mu.Unlock()
}
