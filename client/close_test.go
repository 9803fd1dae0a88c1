package rollcall

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// stuck is metrics that hang.
type stuck struct {
	noMetrics
	began, hang chan struct{}
}

func (s *stuck) Published(Service, int, time.Duration) {
	close(s.began)
	<-s.hang
}

// Close keeps its time whatever a function of the user holds up, here with the locks of
// a service. It is tried in real time: in a bubble, time stands while a lock is waited for.
func TestCloseKeepsItsTime(t *testing.T) {
	m, w := &stuck{began: make(chan struct{}), hang: make(chan struct{})}, newFakeWire()
	w.say(wireOrders, 1, "a:1")
	c, err := New(WithTransport(func() wire.Transport { return w }), WithMetrics(m))
	if err != nil {
		t.Fatal(err)
	}
	go w.begin()
	if _, err := c.Watch(t.Context(), orders, WithAsync()); err != nil {
		t.Fatal(err)
	}
	<-m.began
	for range 2 {
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		select {
		case err := <-closed:
			if err == nil {
				t.Error("nothing is said of the function that hangs")
			}
		case <-time.After(20 * closeTime):
			t.Fatal("it hangs, too")
		}
		if st := c.Status(); st.State != Closed {
			t.Errorf("status %+v", st)
		}
	}
	close(m.hang)
	if err := c.Close(); err != nil {
		t.Errorf("when it has returned: %v", err)
	}
	if _, err := c.Watch(t.Context(), orders); !errors.Is(err, ErrClosed) {
		t.Errorf("a watch of a closed client: %v", err)
	}
}
