package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// readBuffer takes most pushes at once. There is one per connection.
	readBuffer = 4 << 10
	// maxMessage bounds a message of the server, in bytes.
	maxMessage = receiveWindow
)

// StatusError is a call that ended with a status other than OK.
type StatusError struct {
	Code    int // of gRPC
	Message string
}

func (e *StatusError) Error() string {
	return "the call ended with status " + strconv.Itoa(e.Code) + " " + e.Message
}

// What a server must not send.
var (
	errFrameSize = errors.New("a frame is of the wrong size")
	errPadding   = errors.New("a frame is padded beyond its end")
	errOrder     = errors.New("a header block is interrupted")
	errNoStream  = errors.New("a frame of a stream names none")
	errMessage   = errors.New("a message is too large or compressed")
	errNoStatus  = errors.New("a call ended without a status")
	errStream    = errors.New("the server ended the stream")
)

// headersHeard are what counts of a header block.
type headersHeard struct {
	status  int // of HTTP, 0 when absent
	code    int // of gRPC, -1 when absent
	message string
	stream  uint32 // of the block that is not at its end yet; 0 for none
	last    bool   // it ends the stream
}

// read reads frames until the connection ends.
func (c *Conn) read() {
	defer close(c.ended)
	err := c.readFrames()
	c.stop()
	c.mu.Lock()
	c.fail(err)
	err = c.failure
	if c.call.id != 0 {
		c.finish(err)
	}
	c.mu.Unlock()
	if c.handler.Closed != nil {
		c.handler.Closed(err)
	}
}

func (c *Conn) readFrames() error {
	for {
		h, err := http2.ReadFrameHeader(c.in)
		if err != nil {
			return err
		}
		if h.Length > defaultFrame {
			return errFrameSize
		}
		if cap(c.frame) < int(h.Length) {
			c.frame = make([]byte, h.Length)
		}
		payload := c.frame[:h.Length]
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return err
		}
		if err := c.handle(h, payload); err != nil {
			return err
		}
	}
}

func (c *Conn) handle(h http2.FrameHeader, payload []byte) error {
	if h.StreamID == 0 && (h.Type == http2.FrameData || h.Type == http2.FrameRSTStream) {
		return errNoStream
	}
	if c.heard.stream != 0 && (h.Type != http2.FrameContinuation || h.StreamID != c.heard.stream) {
		return errOrder
	}
	switch h.Type {
	case http2.FrameData:
		return c.data(h, payload)
	case http2.FrameHeaders:
		return c.headerBlock(h, payload)
	case http2.FrameContinuation:
		return c.fragment(h, payload)
	case http2.FrameRSTStream:
		return c.reset(h, payload)
	case http2.FrameSettings:
		return c.settings(h, payload)
	case http2.FramePing:
		return c.ping(h, payload)
	case http2.FrameGoAway:
		return goneAway(payload)
	case http2.FrameWindowUpdate:
		return c.windowUpdate(h, payload)
	default:
		return nil
	}
}

// unpad returns the payload without its padding.
func unpad(h http2.FrameHeader, payload []byte) ([]byte, error) {
	const padded = http2.FlagDataPadded // the same bit for headers
	if !h.Flags.Has(padded) {
		return payload, nil
	}
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		return nil, errPadding
	}
	return payload[1 : len(payload)-int(payload[0])], nil
}

func (c *Conn) data(h http2.FrameHeader, payload []byte) error {
	content, err := unpad(h, payload)
	if err != nil {
		return err
	}
	if h.StreamID == streamID {
		c.streamToReturn += int64(len(payload))
		if err := c.streamData(content); err != nil {
			return err
		}
		if h.Flags.Has(http2.FlagDataEndStream) {
			return errStream
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.StreamID == c.call.id && !c.call.done {
		if len(c.call.answer)+len(content) > maxMessage {
			return errMessage
		}
		c.call.answer = append(c.call.answer, content...)
		if h.Flags.Has(http2.FlagDataEndStream) {
			c.finish(errNoStatus)
		}
	}
	return c.returnWindow(int64(len(payload)))
}

// returnWindow lets the server send as much again as was received. The caller holds
// mu.
func (c *Conn) returnWindow(n int64) error {
	c.toReturn += n
	if c.toReturn < receiveWindow/2 {
		return nil
	}
	c.out = appendWindowUpdate(c.out, 0, c.toReturn)
	c.toReturn = 0
	if c.streamToReturn > 0 {
		c.out = appendWindowUpdate(c.out, streamID, c.streamToReturn)
		c.streamToReturn = 0
	}
	return c.flush()
}

// streamData hands on the messages of the stream that are there in full.
func (c *Conn) streamData(content []byte) error {
	if len(c.message) > 0 {
		c.message = append(c.message, content...)
		content = c.message
	}
	for {
		message, rest, err := nextMessage(content)
		if err != nil {
			return err
		}
		if message == nil {
			break
		}
		content = rest
		if c.handler.Message != nil {
			c.handler.Message(c, message)
		}
	}
	c.message = append(c.message[:0], content...)
	return nil
}

// nextMessage returns the first message, nil if it is not there in full.
func nextMessage(b []byte) (message, rest []byte, err error) {
	if len(b) < messageHeader {
		return nil, b, nil
	}
	size := binary.BigEndian.Uint32(b[1:])
	if b[0] != 0 || size > maxMessage {
		return nil, nil, errMessage
	}
	if len(b)-messageHeader < int(size) {
		return nil, b, nil
	}
	b = b[messageHeader:]
	return b[:size:size], b[size:], nil
}

func (c *Conn) headerBlock(h http2.FrameHeader, payload []byte) error {
	content, err := unpad(h, payload)
	if err != nil {
		return err
	}
	if h.Flags.Has(http2.FlagHeadersPriority) {
		if len(content) < 5 {
			return errFrameSize
		}
		content = content[5:]
	}
	c.heard = headersHeard{code: -1, stream: h.StreamID, last: h.Flags.Has(http2.FlagHeadersEndStream)}
	return c.fragment(h, content)
}

// fragment reads a part of a header block, perhaps its end.
func (c *Conn) fragment(h http2.FrameHeader, content []byte) error {
	if c.heard.stream == 0 {
		return errOrder
	}
	if _, err := c.headers.Write(content); err != nil {
		return err
	}
	if !h.Flags.Has(http2.FlagHeadersEndHeaders) {
		return nil
	}
	if err := c.headers.Close(); err != nil {
		return err
	}
	stream := c.heard.stream
	c.heard.stream = 0
	err := c.heard.err()
	if stream == streamID {
		if c.heard.last && err == nil {
			return errStream
		}
		return err
	}
	if err == nil && !c.heard.last {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream == c.call.id && !c.call.done {
		if c.heard.last && c.heard.code < 0 && err == nil {
			err = errNoStatus
		}
		c.finish(err)
	}
	return nil
}

// header takes one field of a block.
func (c *Conn) header(f hpack.HeaderField) {
	switch f.Name {
	case ":status":
		c.heard.status, _ = strconv.Atoi(f.Value) // what is no number is no status
	case "grpc-status":
		c.heard.code, _ = strconv.Atoi(f.Value)
	case "grpc-message":
		c.heard.message = f.Value
	}
}

func (h *headersHeard) err() error {
	if h.status != 0 && h.status != 200 {
		return fmt.Errorf("the server answered HTTP status %d", h.status)
	}
	if h.code > 0 {
		return &StatusError{h.code, h.message}
	}
	return nil
}

// finish ends the call that is under way. The caller holds mu.
func (c *Conn) finish(err error) {
	if c.call.done {
		return
	}
	if err == nil {
		message, rest, bad := nextMessage(c.call.answer)
		if message == nil || len(rest) > 0 {
			bad = errMessage
		}
		// The message moves to the front, so that the memory is used again.
		c.call.answer, err = append(c.call.answer[:0], message...), bad
	}
	c.call.err, c.call.done = err, true
	c.answered <- struct{}{} // there is room: one call, one end
	c.room.Broadcast()       // it may end while its request is being sent
}

func (c *Conn) reset(h http2.FrameHeader, payload []byte) error {
	if len(payload) != 4 {
		return errFrameSize
	}
	err := fmt.Errorf("the server reset the stream: %v", http2.ErrCode(binary.BigEndian.Uint32(payload)))
	if h.StreamID == streamID {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.StreamID == c.call.id {
		c.finish(err)
	}
	return nil
}

func (c *Conn) settings(h http2.FrameHeader, payload []byte) error {
	if h.Flags.Has(http2.FlagSettingsAck) {
		return nil
	}
	if len(payload)%6 != 0 {
		return errFrameSize
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; len(payload) > 0; payload = payload[6:] {
		value := binary.BigEndian.Uint32(payload[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(payload)) {
		case http2.SettingInitialWindowSize:
			more := int64(value) - c.initialWindow
			c.initialWindow = int64(value)
			c.streamWindow += more
			c.callWindow += more
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(value)
		case http2.SettingHeaderTableSize:
			c.plain = value < defaultTable
		default: // nothing that a client of one stream and one call needs
		}
	}
	c.out = appendFrame(c.out, http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	c.room.Broadcast()
	return c.sendBacklog()
}

func (c *Conn) ping(h http2.FrameHeader, payload []byte) error {
	if h.Flags.Has(http2.FlagPingAck) {
		return nil
	}
	if len(payload) != 8 {
		return errFrameSize
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = appendFrame(c.out, http2.FramePing, http2.FlagPingAck, 0, payload)
	return c.flush()
}

func goneAway(payload []byte) error {
	if len(payload) < 8 {
		return errFrameSize
	}
	return fmt.Errorf("the server went away: %v %s", http2.ErrCode(binary.BigEndian.Uint32(payload[4:])), payload[8:])
}

func (c *Conn) windowUpdate(h http2.FrameHeader, payload []byte) error {
	if len(payload) != 4 {
		return errFrameSize
	}
	n := int64(binary.BigEndian.Uint32(payload) & 0x7fffffff)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch h.StreamID {
	case 0:
		c.window += n
	case streamID:
		c.streamWindow += n
	case c.call.id:
		c.callWindow += n
	}
	c.room.Broadcast()
	return c.sendBacklog()
}
