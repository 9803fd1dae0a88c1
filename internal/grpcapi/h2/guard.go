package h2

import (
	"time"

	"golang.org/x/net/http2"
)

// guard bounds the frames of a client that are no message and lead to none: floods
// of PING, SETTINGS, RST_STREAM, WINDOW_UPDATE, PRIORITY, CONTINUATION or unknown
// frames, empty or tiny DATA, streams that are opened and reset. Each costs a part
// of an allowance, which comes back with each message in either direction and with
// time. It belongs to the goroutine that reads.
type guard struct {
	allowance int
	refilled  time.Time // when time last gave something back
}

const (
	// allowanceMax is how many such frames may come at once. SDKs send a ping a
	// minute; the libraries below them one, and some updates of windows, with each
	// message.
	allowanceMax = 2000
	// allowancePerSecond comes back with time.
	allowancePerSecond = 100
	// earnings come back with each message, and each frame of at least fullFrame
	// bytes of a larger one.
	earnings  = 8
	fullFrame = 1 << 10

	costOfFrame = 1
	costOfReset = 4 // the stream may have begun to do something
)

// charge takes the cost of a frame off the allowance. An error ends the
// connection.
func (c *conn) charge(cost int) error {
	g := &c.guard
	if g.allowance -= cost; g.allowance >= 0 {
		return nil
	}
	c.mu.Lock()
	g.allowance += c.earned
	c.earned = 0
	c.mu.Unlock()
	if g.allowance < 0 {
		now := time.Now()
		g.allowance += int(min(now.Sub(g.refilled).Seconds(), allowanceMax) * allowancePerSecond)
		g.refilled = now
	}
	g.allowance = min(g.allowance, allowanceMax)
	if g.allowance < 0 {
		return &connError{http2.ErrCodeEnhanceYourCalm, "too many frames that lead to nothing"}
	}
	return nil
}

// earn notes that a message has come or was sent. The caller holds c.mu.
func (c *conn) earn() { c.earned = min(c.earned+earnings, allowanceMax) }
