package h2

import (
	"testing"
	"testing/synctest"
	"time"
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
				ws := &writers{}
				ws.start(0)
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

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
