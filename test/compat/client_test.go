package compat

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// orderTimeout bounds one call of an SDK. Its own time-outs are shorter.
const orderTimeout = 20 * time.Second

// readyTimeout bounds the start of a driver: a JVM has much to load, and others start
// beside it.
const readyTimeout = time.Minute

// A client is a running driver.
type client struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	sdk  string // name and version, as the driver told

	mu      sync.Mutex
	lastID  int
	answers map[int]line
	changes []change // in the order in which the SDK told them
	talk    []string // the latest lines that are not for us
	talked  int      // how many there were
	ready   bool
	ended   bool
}

// A change is what an SDK told a listener.
type change struct {
	at      time.Time
	service string
	hosts   []Instance
}

// talkKept is how much of the SDK's own talk a failed test shows, in lines.
const talkKept = 40

// startClient runs a driver against a server or a proxy until the test ends, and
// waits until it is ready.
func startClient(t *testing.T, name string, command []string, addr, namespace string) *client {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(command[1:]), host, port, namespace)
	c := &client{t: t, name: name, cmd: exec.Command(command[0], args...), answers: map[int]line{}}
	c.cmd.Dir = t.TempDir() // for what the SDK caches and logs
	c.cmd.Env = append(os.Environ(), "HOME="+c.cmd.Dir)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.listen()
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(c.stop)
	eventually(t, readyTimeout, name+" to be ready", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ready || c.ended
	})
	if c.ended {
		t.Fatalf("%s ended before it was ready", name)
	}
	return c
}

// listen reads what the driver writes until it ends.
func (c *client) listen() {
	read, write := io.Pipe()
	c.cmd.Stdout, c.cmd.Stderr = write, &talker{c: c}
	c.cmd.WaitDelay = 2 * time.Second
	go func() {
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			c.hear(lines.Bytes())
		}
	}()
}

// hear takes one line of the driver.
func (c *client) hear(text []byte) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var l line
	switch err := json.Unmarshal(text, &l); {
	case err != nil:
		c.chat(string(text))
	case l.Ready != "":
		c.sdk, c.ready = l.Ready, true
	case l.Service != "":
		c.changes = append(c.changes, change{at: now, service: l.Service, hosts: l.Hosts})
	default:
		c.answers[l.ID] = l
	}
}

// chat keeps some talk; mu is held.
func (c *client) chat(text string) {
	c.talked++
	c.talk = append(c.talk, text)
	if over := len(c.talk) - talkKept; over > 0 {
		c.talk = c.talk[over:]
	}
}

// talker takes what the driver writes to standard error.
type talker struct{ c *client }

func (w *talker) Write(p []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	for text := range strings.SplitSeq(strings.TrimRight(string(p), "\n"), "\n") {
		w.c.chat(text[:min(len(text), 300)])
	}
	return len(p), nil
}

// stop kills the driver, stopped or not, and shows its talk if the test failed.
func (c *client) stop() {
	if c.ended {
		return
	}
	c.ended = true
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
	if closer, ok := c.cmd.Stdout.(io.Closer); ok {
		_ = closer.Close()
	}
	if c.t.Failed() {
		c.t.Logf("%s said:\n%s", c.name, strings.Join(c.talk, "\n"))
	}
}

// signal sends a signal to the driver.
func (c *client) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatalf("%s: %v", c.name, err)
	}
}

// try sends one order and returns the answer.
func (c *client) try(op string, inst Instance) line {
	c.t.Helper()
	return c.send(order{Op: op, Instance: inst})
}

// batch registers several instances of one service in one call.
func (c *client) batch(p place, members ...Instance) {
	c.t.Helper()
	o := order{Op: "batch", Instance: Instance{Service: p.service, Group: p.group}, Batch: members}
	if l := c.send(o); l.Error != "" {
		c.t.Fatalf("%s: batch: %s", c.name, l.Error)
	}
}

// send numbers an order, sends it and returns the answer.
func (c *client) send(o order) line {
	c.t.Helper()
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.mu.Unlock()
	o.ID = id
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		c.t.Fatalf("%s: send %s: %v", c.name, o.Op, err)
	}
	var l line
	eventually(c.t, orderTimeout, c.name+" to answer "+o.Op, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		var ok bool
		l, ok = c.answers[id]
		return ok
	})
	return l
}

// do sends one order that must succeed.
func (c *client) do(op string, inst Instance) line {
	c.t.Helper()
	l := c.try(op, inst)
	if l.Error != "" {
		c.t.Fatalf("%s: %s %s: %s", c.name, op, inst.addr(), l.Error)
	}
	return l
}

// lookup looks a service up until the answer is right. SDKs answer from a cache.
func (c *client) lookup(service, group string, within time.Duration, what string, right func([]Instance) bool) []Instance {
	c.t.Helper()
	var hosts []Instance
	var failure string
	seen := func() bool {
		l := c.try("lookup", Instance{Service: service, Group: group})
		hosts, failure = l.Hosts, l.Error
		return failure == "" && right(hosts)
	}
	if !holds(within, seen) {
		c.t.Fatalf("%s looks %s up: got %+v (error %q) for %s, want %s", c.name, service, hosts, failure, within, what)
	}
	return hosts
}

// told waits until a listener was told something right at or after since, and
// returns the first such change.
func (c *client) told(service string, since time.Time, within time.Duration, what string, right func([]Instance) bool) change {
	c.t.Helper()
	var found change
	heard := func() bool {
		for _, ch := range c.since(service, since) {
			if right(ch.hosts) {
				found = ch
				return true
			}
		}
		return false
	}
	if !holds(within, heard) {
		c.t.Fatalf("%s was told %s, want %s within %s", c.name, describe(c.since(service, since)), what, within)
	}
	return found
}

// since returns what a service's listener was told at or after a time.
func (c *client) since(service string, since time.Time) []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []change
	for _, ch := range c.changes {
		if ch.service == service && !ch.at.Before(since) {
			out = append(out, ch)
		}
	}
	return out
}

// describe shows changes in a line.
func describe(changes []change) string {
	if len(changes) == 0 {
		return "nothing"
	}
	var parts []string
	for _, ch := range changes {
		parts = append(parts, strings.Join(addrs(ch.hosts), " "))
	}
	return "[" + strings.Join(parts, "] then [") + "]"
}
