package faulttest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// echo answers each line.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for r := bufio.NewReader(c); ; {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if _, err := c.Write([]byte(line)); err != nil {
					return
				}
			}
		}()
	}
}

// say says a line and returns how long the answer took.
func say(t *testing.T, c net.Conn) (time.Duration, error) {
	t.Helper()
	started := time.Now()
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return 0, err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := bufio.NewReader(c).ReadString('\n')
	return time.Since(started), err
}

func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(t)
		const at = "10.0.0.1:80"
		if _, err := n.Dial(t.Context(), "tcp", at); !errors.Is(err, errRefused) {
			t.Fatalf("nobody listens: %v", err)
		}
		l := n.Listen(at)
		defer l.Close()
		go echo(l)
		c, err := n.Dial(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if d, err := say(t, c); err != nil || d != 0 {
			t.Errorf("%v, %v", d, err)
		}
		n.Slow(at, time.Second)
		if d, err := say(t, c); err != nil || d != time.Second {
			t.Errorf("slow: %v, %v", d, err)
		}
		n.Slow(at, 0)
		for _, f := range []Fault{BlackHole, HalfOpen} {
			n.Set(at, f)
			time.AfterFunc(30*time.Second, func() { n.Set(at, Healthy) })
			if d, err := say(t, c); err != nil || d != 30*time.Second {
				t.Errorf("fault %d: %v, %v", f, d, err)
			}
		}
		n.Set(at, BlackHole)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, "tcp", at); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dialled into a black hole: %v", err)
		}
		n.Set(at, Refused)
		if _, err := say(t, c); err == nil {
			t.Error("answered over a broken connection")
		}
		if _, err := n.Dial(t.Context(), "tcp", at); !errors.Is(err, errRefused) {
			t.Errorf("got %v", err)
		}
		if got := n.Dials(at); got != 4 {
			t.Errorf("%d dials, want 4", got)
		}
	})
}

func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	p := NewProxy(t, l.Addr().String())
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := say(t, c); err != nil {
		t.Error(err)
	}
	p.Set(Refused)
	if _, err := say(t, c); err == nil {
		t.Error("answered over a broken connection")
	}
}
