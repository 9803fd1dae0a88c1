package h2

import (
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// During a burst, connections that were written to read nothing until the others were
// written to as well, or the burst has lasted too long; all others read.
func TestReadingGivesWayToABurst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what    string
		waiting int           // connections in the queue
		pause   time.Duration // after each that is taken
		waits   bool          // the first one that was written to
		after   int           // how many others have then been taken at least
	}{
		{"few wait", burstLength, 0, false, 0},
		{"many wait", 10 * burstLength, 0, true, 10*burstLength - 1},
		{"a long burst", 10 * burstLength, 10 * time.Millisecond, true, int(burstMost / (10 * time.Millisecond))},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ws := newWriters()
				conns := make([]conn, tt.waiting)
				for i := range conns {
					ws.put(&conns[i])
				}
				first := ws.take()
				read := make(chan struct{})
				go func() { ws.giveWay(first); close(read) }()
				synctest.Wait()
				if waits := !closed(read); waits != tt.waits {
					t.Fatalf("the first one waits: %v", waits)
				}
				ws.giveWay(&conn{}) // nothing was written to it, so it returns at once

				taken, before := 0, -1
				ws.running.Go(func() {
					for ws.take() != nil {
						if taken++; before < 0 && closed(read) {
							before = taken - 1
						}
						time.Sleep(tt.pause)
					}
				})
				<-read
				ws.stop()
				if before < 0 {
					before = taken
				}
				if taken != tt.waiting-1 || before < tt.after {
					t.Errorf("it read after %d of %d others, want %d at least", before, taken, tt.after)
				}
			})
		})
	}
}

// watchedSocket says when it begins to be read.
type watchedSocket struct {
	syscall.RawConn
	reading chan struct{}
}

func (s watchedSocket) Read(f func(fd uintptr) bool) error {
	return s.RawConn.Read(func(fd uintptr) bool {
		select {
		case s.reading <- struct{}{}:
		default:
		}
		return f(fd)
	})
}

// A connection whose reading gives way is closed at once: a writer that finds it broken
// does so, and the burst goes on no sooner than that is done.
func TestClosingDoesNotWaitForABurst(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := New(DefaultConfig(), nil, slog.New(slog.DiscardHandler))
	c := newConn(s, nc, nil)
	if c.raw == nil {
		t.Skip("sockets are not read without waiting here")
	}
	reading := make(chan struct{}, 1)
	c.raw = watchedSocket{c.raw, reading}
	s.writers.put(c)
	others := make([]conn, 2*burstLength)
	for i := range others {
		s.writers.put(&others[i])
	}
	s.writers.take()

	read := make(chan error)
	go func() { read <- c.fill() }()
	<-reading
	shut := make(chan error)
	go func() { shut <- nc.Close() }()
	select {
	case err := <-shut:
		if err != nil {
			t.Errorf("closed: %v", err)
		}
	case <-time.After(grpctest.Patience):
		t.Fatal("the connection is not closed while a burst goes on")
	}
	for range others {
		s.writers.take()
	}
	s.writers.stop()
	if err := <-read; err == nil {
		t.Error("a closed connection was read")
	}
}

// Who has given way to one burst reads in the next, also when that has come to its
// connection already.
func TestReadingGivesWayOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ws := newWriters()
		conns := make([]conn, 3*burstLength)
		for i := range conns {
			ws.put(&conns[i])
		}
		first := ws.take()
		read := make(chan struct{})
		go func() { ws.giveWay(first); close(read) }()
		synctest.Wait()
		ws.mu.Lock()
		ws.endBurst()
		first.burst = ws.burst
		ws.mu.Unlock()
		synctest.Wait()
		if !closed(read) {
			t.Error("it waits for another burst")
			ws.stop()
		}
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
