package rollcall

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestLookupsShareOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.set(func(f *fakeWire) { f.delay = time.Second })
		w.up()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if s, err := c.Lookup(t.Context(), orders); err != nil || addresses(s) != "a:1" {
					t.Errorf("%v, %v", s, err)
				}
			})
		}
		wg.Go(func() { // one who is in a hurry ends nobody else's
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := c.Lookup(ctx, orders); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
		wg.Wait()
		if n := w.ops("query"); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		w.set(func(f *fakeWire) { f.delay = time.Hour })
		began := time.Now()
		if _, err := c.Lookup(context.Background(), orders); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v, want 5 s", err, time.Since(began))
		}
	})
}
