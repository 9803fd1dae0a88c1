package rollcall

import (
	"testing"
	"time"
)

// A client that was started before its server is gRPC's when both protocols come up
// together, whatever it had heard of the port until then.
func TestServerIsStartedAfterTheClient(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second, 10 * time.Minute} {
		t.Run(late.String(), func(t *testing.T) {
			choosing(t, func(t *testing.T, c *Client, f *fleet) {
				f.works(false, false)
				c.start()
				time.Sleep(late)
				f.works(true, true)
				if _, http := f.last(); http != nil {
					go http.begin() // the first to notice
				}
				if grpc, _ := f.last(); late < probeHTTP {
					go grpc.begin()
				}
				time.Sleep(100 * time.Millisecond)
				if st := c.Status(); st.State != Connected || st.Protocol != GRPC {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// A port that stays closed when the server comes costs no more than its answer, and one
// that says nothing no more than the budget.
func TestServerWithoutGRPCIsStartedAfterTheClient(t *testing.T) {
	for name, test := range map[string]struct {
		silent bool
		most   time.Duration
	}{
		"closed": {false, 100 * time.Millisecond},
		"silent": {true, budget + 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			choosing(t, func(t *testing.T, c *Client, f *fleet) {
				f.works(false, false)
				c.start()
				time.Sleep(20 * time.Second)
				f.mu.Lock()
				f.grpcSilent = test.silent
				f.mu.Unlock()
				_, http := f.last()
				go http.begin()
				settle(t, c, HTTP, test.most)
			})
		})
	}
}
