package rollcall

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A list of servers that cannot be had any more stays, and is asked for again and again.
func TestListOfServersFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[string]
		answer.Store(new("10.0.0.1"))
		var asked atomic.Int32
		c, err := build([]Option{WithServerSource(func(context.Context) ([]string, error) {
			asked.Add(1)
			if a := answer.Load(); a != nil {
				return strings.Fields(*a), nil
			}
			return nil, errors.New("the address server is away")
		})})
		if err != nil {
			t.Fatal(err)
		}
		f := new(fleet)
		f.works(true, true)
		c.newGRPC, c.newHTTP = f.newGRPC, f.newHTTP
		c.start()
		defer c.Close()
		settle(t, c, GRPC, time.Second)
		answer.Store(nil)
		time.Sleep(10 * time.Minute)
		if asked.Load() < 20 || len(c.servers.Round()) != 1 || c.Status().State != Connected {
			t.Errorf("asked %d times, the list is %v, status %+v", asked.Load(), c.servers.Round(), c.Status())
		}
		answer.Store(new("10.0.0.1 10.0.0.2"))
		time.Sleep(endpointRefresh)
		if got := c.servers.Round(); len(got) != 2 {
			t.Errorf("when it is back, the list is %v", got)
		}
	})
}
