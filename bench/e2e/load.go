package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// call is a kind of request. Requests of one kind are numbered, and differ by
// their number alone.
type call struct {
	name string
	// build appends request n.
	build func(b []byte, n int) []byte
	// check reports whether the body of a 200 is the right one. Every answer is
	// checked.
	check func(body []byte) bool
}

// fleet is a number of keep-alive connections to a server, each with at most one
// request under way. It is for one goroutine.
//
// The connections are served in turn by blocking system calls: the answer to the
// one request is read, the next request is written, then comes the next
// connection. So the server always has requests waiting, and the load costs no
// more than a read and a write per request.
type fleet struct {
	sockets []int
	out     []byte
	in      []byte
}

// answerTimeout bounds the wait for one answer.
const answerTimeout = 10 * time.Second

// dial opens n connections.
func dial(address string, n int) (*fleet, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	f := &fleet{in: make([]byte, 1<<20)}
	for range n {
		s, err := socket(to)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		f.sockets = append(f.sockets, s)
	}
	return f, nil
}

func socket(to netip.AddrPort) (int, error) {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	timeout := syscall.NsecToTimeval(answerTimeout.Nanoseconds())
	err = errors.Join(
		syscall.SetsockoptTimeval(s, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &timeout),
		syscall.SetsockoptTimeval(s, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &timeout),
		syscall.SetsockoptInt(s, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.Connect(s, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}),
	)
	if err != nil {
		_ = syscall.Close(s)
		return 0, err
	}
	return s, nil
}

func (f *fleet) close() {
	for _, s := range f.sockets {
		_ = syscall.Close(s)
	}
}

// drive sends the requests from number first on for as long as more says, and
// returns how many were sent; all of them have been answered. more is asked before
// each.
func (f *fleet) drive(c *call, first int, more func(sent int) bool) (sent int, err error) {
	sockets := f.sockets
	waiting := make([]bool, len(sockets))
	for busy := true; busy; {
		busy = false
		for i, s := range sockets {
			if waiting[i] {
				waiting[i] = false
				if err := f.receive(s, c); err != nil {
					return sent, fmt.Errorf("%s: %w", c.name, err)
				}
			}
			if !more(sent) {
				continue
			}
			if err := f.send(s, c, first+sent); err != nil {
				return sent, fmt.Errorf("%s: %w", c.name, err)
			}
			sent++
			waiting[i], busy = true, true
		}
	}
	return sent, nil
}

// each sends the requests from number first to before number end.
func (f *fleet) each(ctx context.Context, c *call, first, end int) error {
	_, err := f.drive(c, first, func(sent int) bool { return first+sent < end && ctx.Err() == nil })
	return errors.Join(err, ctx.Err())
}

// lasting is for drive: requests are sent for so long. The clock is looked at
// every 32 requests.
func lasting(d time.Duration) func(int) bool {
	end, on := time.Now().Add(d), true
	return func(sent int) bool {
		if sent%32 == 0 {
			on = on && time.Now().Before(end)
		}
		return on
	}
}

// paced is for drive: so many requests a second are sent, for so long.
func paced(perSecond int, d time.Duration) func(int) bool {
	const burst = 64 // between two looks at the clock
	start, on := time.Now(), true
	return func(sent int) bool {
		if sent%burst == 0 {
			time.Sleep(time.Until(start.Add(time.Duration(sent) * time.Second / time.Duration(perSecond))))
			on = on && time.Since(start) < d
		}
		return on
	}
}

func (f *fleet) send(s int, c *call, n int) error {
	f.out = c.build(f.out[:0], n)
	for b := f.out; len(b) > 0; {
		n, err := syscall.Write(s, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// receive reads one answer, which must be a 200 with the right body.
func (f *fleet) receive(s int, c *call) error {
	body, err := f.body(s)
	if err != nil {
		return err
	}
	if !c.check(body) {
		return fmt.Errorf("the answer is wrong: %.300q", body)
	}
	return nil
}

// body reads one answer and returns the body of a 200.
func (f *fleet) body(s int) ([]byte, error) {
	n, end := 0, 0 // read so far, and how long the answer is; 0 until its head is there
	var head int
	for end == 0 || n < end {
		if n == len(f.in) {
			return nil, errors.New("the answer is too large")
		}
		m, err := syscall.Read(s, f.in[n:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, err
		case m == 0:
			return nil, errors.New("the server closed the connection")
		}
		n += m
		if end > 0 {
			continue
		}
		if at := bytes.Index(f.in[:n], []byte("\r\n\r\n")); at >= 0 {
			head = at + 4
			length, err := contentLength(f.in[:head])
			if err != nil {
				return nil, err
			}
			end = head + length
		}
	}
	if n > end || !bytes.HasPrefix(f.in, []byte("HTTP/1.1 200 ")) {
		return nil, fmt.Errorf("the answer is %.300q", f.in[:n])
	}
	return f.in[head:end], nil
}

func contentLength(head []byte) (int, error) {
	const name = "\r\nContent-Length: "
	at := bytes.Index(head, []byte(name))
	if at < 0 {
		return 0, fmt.Errorf("the answer has no length: %.300q", head)
	}
	value, _, _ := bytes.Cut(head[at+len(name):], []byte("\r"))
	return strconv.Atoi(string(value))
}

// ask sends one request on a connection of its own and returns the body.
func ask(address string, c *call, n int) ([]byte, error) {
	f, err := dial(address, 1)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.send(f.sockets[0], c, n); err != nil {
		return nil, err
	}
	body, err := f.body(f.sockets[0])
	return bytes.Clone(body), err
}
