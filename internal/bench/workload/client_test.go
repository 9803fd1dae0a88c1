package workload

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// gone is a subscriber whose connection has ended.
type gone struct {
	target.Subscriber
	ended chan struct{}
}

func (g gone) Ended() <-chan struct{} { return g.ended }

func (gone) Close() {}

// A client that is told to end while it tries to come back does so, although the time
// for a beat has passed meanwhile.
func TestClientEndsWhileTheServerIsGone(t *testing.T) {
	server, err := target.New("gone", "127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet.Fleet{Name: "gone", Services: 1, Size: 1, Owners: 1}
	for range 20 { // the select that went wrong did so every other time
		synctest.Test(t, func(t *testing.T) {
			e := &Env{Target: server, Config: Config{Protocol: target.GRPC}, Rec: load.NewRecorder()}
			c := e.crowd(f, &watch{})[0]
			ended := make(chan struct{})
			close(ended)
			c.subscriber = gone{ended: ended}
			ctx, cancel := context.WithTimeout(t.Context(), beatInterval+time.Second)
			defer cancel()
			c.live(ctx)
		})
	}
}
