package httpapi

import (
	"bytes"
	"net"
	"time"
)

// finish renders the answer and reports whether the connection goes on.
func (c *conn) finish() (goOn bool) {
	x := c.x
	if x.answer.status == 0 {
		x.answer.status = 200
	}
	if !x.answer.begun {
		c.holdAnswer()
	}
	c.now = time.Now()
	c.observe(x.route, c.now.Sub(c.received))
	if x.answer.begun {
		return !x.answer.cut && c.goesOn()
	}
	defer c.releaseAnswer()
	goOn = c.goesOn()
	return c.render(goOn) == nil && goOn
}

// goesOn reports whether the connection stays open after the answer as it is.
func (c *conn) goesOn() bool {
	a := &c.x.answer
	return !a.close && a.framing != byClose && !closesConnection(a.status) && !c.x.head.closes() && !c.stopping()
}

func (c *conn) observe(route *Route, took time.Duration) {
	if observe := c.server.router.hooks.Observe; observe != nil {
		observe(route, c.x.answer.status, took)
	}
}

// Answers up to copyBytes are copied behind their head and written with it, and
// with other pipelined answers up to batchBytes; longer ones are written from
// where they are.
const (
	copyBytes  = 16 << 10
	batchBytes = 32 << 10
)

// render puts the answer into x.out, and writes that out if it has grown large.
func (c *conn) render(keepAlive bool) error {
	x := c.x
	x.out = x.appendHead(x.out, c.now, keepAlive)
	a := &x.answer
	switch {
	case !x.hasBody():
	case a.size() > copyBytes:
		err := c.writeParts(x.out, a.body, a.more[0], a.more[1])
		x.out = x.out[:0]
		c.runAfter()
		return err
	default:
		x.out = append(append(append(x.out, a.body...), a.more[0]...), a.more[1]...)
	}
	if len(x.out) > batchBytes {
		return c.flush()
	}
	return nil
}

// hasToken reports whether a comma list names token, whatever its case.
func hasToken(list []byte, token string) bool {
	for more := true; more; {
		var part []byte
		part, list, more = bytes.Cut(list, []byte{','})
		part, _, _ = bytes.Cut(part, []byte{';'})
		if isName(bytes.TrimSpace(part), token) {
			return true
		}
	}
	return false
}

// flush writes the rendered answers and then runs what waited for that.
func (c *conn) flush() error {
	if c.x == nil || len(c.x.out) == 0 && len(c.x.after) == 0 {
		return nil
	}
	err := c.write(c.x.out)
	c.x.out = c.x.out[:0]
	c.runAfter()
	return err
}

func (c *conn) runAfter() {
	for i, f := range c.x.after {
		c.x.after[i] = nil
		f()
	}
	c.x.after = c.x.after[:0]
}

// write writes b within the write timeout.
func (c *conn) write(b []byte) error {
	if err := c.armForWrite(); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

// writeParts writes parts one after the other, from where they are, within the
// write timeout.
func (c *conn) writeParts(parts ...[]byte) error {
	if err := c.armForWrite(); err != nil {
		return err
	}
	buffers := net.Buffers(parts)
	_, err := buffers.WriteTo(c.nc)
	return err
}

// armForWrite sets the deadline of a write, unless the one that is set will do.
func (c *conn) armForWrite() error {
	timeout := c.server.cfg.WriteTimeout
	if !c.armedWrite.Before(c.now.Add(timeout / 2)) {
		return nil
	}
	c.armedWrite = c.now.Add(timeout)
	return c.nc.SetWriteDeadline(c.armedWrite)
}
