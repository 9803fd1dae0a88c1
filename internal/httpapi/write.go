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
	c.now = time.Now()
	c.observe(x.route, c.now.Sub(c.received))
	if x.answer.begun {
		return !x.answer.cut && c.goesOn()
	}
	goOn = c.goesOn()
	x.compress()
	return c.render(goOn) == nil && goOn
}

// goesOn reports whether the connection stays open after the answer as it is.
func (c *conn) goesOn() bool {
	a := &c.x.answer
	return !a.close && a.framing != byClose && !closesConnection(a.status) && !c.x.wantsClose() && !c.stopping()
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
	body := x.answer.body
	if !x.hasBody() {
		body = nil
	}
	if len(body) > copyBytes {
		err := c.write(x.out, body)
		x.out = x.out[:0]
		c.runAfter()
		return err
	}
	x.out = append(x.out, body...)
	if len(x.out) > batchBytes {
		return c.flush()
	}
	return nil
}

// wantsClose reports whether the client ends the connection after this request.
func (x *Exchange) wantsClose() bool {
	if x.head.ConnectionClose() {
		return true
	}
	value := x.head.Peek("Connection")
	return len(value) > 0 && hasToken(value, "close")
}

// hasToken reports whether a comma list names token, whatever its case.
func hasToken(list []byte, token string) bool {
	for part := range bytes.SplitSeq(list, []byte{','}) {
		part, _, _ = bytes.Cut(part, []byte{';'})
		if bytes.EqualFold(bytes.TrimSpace(part), bytesOf(token)) {
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
	err := c.write(c.x.out, nil)
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

// write writes head, and then body if it is not empty, within the write timeout.
func (c *conn) write(head, body []byte) error {
	if timeout := c.server.cfg.WriteTimeout; c.armedWrite.Before(c.now.Add(timeout / 2)) {
		c.armedWrite = c.now.Add(timeout)
		if err := c.nc.SetWriteDeadline(c.armedWrite); err != nil {
			return err
		}
	}
	if len(body) == 0 {
		_, err := c.nc.Write(head)
		return err
	}
	buffers := net.Buffers{head, body}
	_, err := buffers.WriteTo(c.nc)
	return err
}
