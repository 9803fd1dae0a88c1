package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// leaveTime bounds the last call, when the command has been interrupted.
const leaveTime = 5 * time.Second

// keep registers an instance and keeps it alive until ctx ends, and deregisters it then.
func (c *client) keep(ctx context.Context, sdk *rollcall.Client, r *registration) error {
	kept, err := c.registerBy(ctx, sdk, r)
	if err != nil {
		return err
	}
	if err := c.say("registered", r); err != nil {
		return err
	}
	if !c.json {
		fmt.Fprintf(c.notes, "keeping it alive over %s; interrupt to deregister\n", sdk.Status().Protocol)
	}
	telling := c.tell(ctx, sdk, kept)
	<-ctx.Done()
	telling()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := kept.Deregister(leaving); err != nil {
		fmt.Fprintf(c.notes, "%s was not deregistered, and goes when the server misses it\n", r.instance)
		return c.worded(leaving, err)
	}
	if stillThere(leaving, sdk, r) {
		if !c.json {
			fmt.Fprintf(c.notes, "%s is still in %s: another client keeps it alive; see `rollcall list %s`\n", r.instance, r.service, r.service)
		}
		return c.say("left", r)
	}
	return c.say("deregistered", r)
}

// goneTime is how long a server may take to show that an instance is gone: Nacos 1.x takes
// up to half a second.
const goneTime = time.Second

// stillThere reports whether clients see an instance which has been deregistered.
func stillThere(ctx context.Context, sdk *rollcall.Client, r *registration) bool {
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	pause := time.NewTicker(goneTime / 10)
	defer pause.Stop()
	for {
		found, err := sdk.Lookup(ctx, r.service.sdk(r.namespace), rollcall.WithClusters(r.cluster))
		if err != nil {
			return ctx.Err() != nil
		}
		if r.in(found) == nil {
			return false
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return true
		}
	}
}

// tell tells people when the connection, which is there, goes and comes, and when a
// registration, which may be nil, fails and succeeds again. It returns what ends that.
func (c *client) tell(ctx context.Context, sdk *rollcall.Client, kept *rollcall.Registration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		t := teller{c: c}
		for s := range sdk.StatusChanges(ctx) {
			t.connection(&s)
			if kept != nil && s.State == rollcall.Connected {
				t.registration(kept.State())
			}
		}
	})
	return func() { cancel(); telling.Wait() }
}

// teller remembers what it told.
type teller struct {
	c       *client
	server  string // the last one; empty before there was one
	lost    bool   // the connection
	missing bool   // whether the registration may be, until it is made again
}

// connection tells what is different. Over HTTP a client moves to another server without
// being apart from all.
func (t *teller) connection(s *rollcall.Status) {
	switch {
	case s.State == rollcall.Connected:
		if t.lost || t.server != "" && t.server != s.Server {
			fmt.Fprintf(t.c.notes, "%s connected to %s over %s\n", now(), s.Server, s.Protocol)
		}
		t.lost, t.server = false, s.Server
	case s.State == rollcall.Connecting && !t.lost:
		t.lost, t.missing = true, true
		fmt.Fprintf(t.c.notes, "%s not connected, going on: %v\n", now(), s.LastError)
	}
}

// registration is for a client that is connected.
func (t *teller) registration(s rollcall.RegState) {
	refused := s.Phase == rollcall.Retrying && !errors.Is(s.Err, rollcall.ErrNotConnected)
	switch {
	case refused && !t.missing:
		t.missing = true
		fmt.Fprintf(t.c.notes, "%s not registered, going on: %v\n", now(), s.Err)
	case s.Phase == rollcall.Registered && t.missing:
		t.missing = false
		fmt.Fprintf(t.c.notes, "%s registered again\n", now())
	}
}

// now is the time as tables show it.
func now() string { return stamp(time.Now().UnixMilli()) }
