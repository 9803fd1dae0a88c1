package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// control are instances that nobody beats for. A server that looks at beats must find
// them unhealthy, or take them out; one that does nothing with beats would otherwise
// pass for a fast one. There is none over gRPC, where instances live with their
// connection, and none of a yardstick.
//
// One more of their service is kept alive: a server may list all of a service as healthy
// where nobody is. Source: Nacos, ServiceUtil.doSelectInstances with a protection
// threshold of 0.
type control struct {
	env        *Env
	fleet      *fleet.Fleet
	kept       fleet.Instance
	keeper     *keeper
	registered time.Time
	after      time.Duration // from the registration until all were found out
}

const (
	// controls is how many there are, and controlTimeout after how long without a beat
	// they ask to be unhealthy. A server that grants no timeout of one's own is given
	// the usual one.
	controls       = 5
	controlTimeout = time.Second
	// checkInterval is how often a server looks for those who are late. Source: Nacos,
	// ClientBeatCheckTaskV2, each 5 s; and as long again for a machine that is busy.
	checkInterval = 5 * time.Second
	controlLimit  = usualTimeout + 2*checkInterval
	controlEvery  = 100 * time.Millisecond
)

// neglect registers instances and leaves them alone.
func (e *Env) neglect(ctx context.Context) (*control, error) {
	if e.Config.Protocol != target.HTTP || e.Target.Yardstick {
		return nil, nil
	}
	c := &control{env: e, fleet: e.fleet("neglected", 1, controls, 1)}
	c.fleet.BeatTimeoutMillis = int(controlTimeout.Milliseconds())
	s, err := e.Target.Dial(ctx, e.Config.Protocol)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	usual := *c.fleet
	usual.BeatTimeoutMillis = 0
	c.kept = fleet.Instance{Service: usual.Service(0), Host: controls}
	c.registered = time.Now()
	service := c.fleet.Service(0)
	if err := errors.Join(s.RegisterService(service), s.Register(c.kept)); err != nil {
		return nil, fmt.Errorf("register instances that do not beat: %w", err)
	}
	have, err := s.Count(service)
	if err == nil && have != controls+1 {
		err = fmt.Errorf("%s: %d instances are listed after their registration, not %d", service.Name(), have, controls+1)
	}
	if err != nil {
		return nil, err
	}
	c.keeper, err = e.keepAlive(ctx, []fleet.Instance{c.kept}, nil)
	return c, err
}

// verify waits until none of them is listed as healthy. It is for a nil control as well.
func (c *control) verify(ctx context.Context) error {
	if c == nil {
		return nil
	}
	s, err := c.env.Target.Dial(ctx, c.env.Config.Protocol)
	if err != nil {
		return err
	}
	defer s.Close()
	return c.await(ctx, s.List)
}

func (c *control) await(ctx context.Context, list func(fleet.Service) ([]fleet.Host, error)) error {
	for {
		hosts, err := list(c.fleet.Service(0))
		if err != nil {
			return err
		}
		healthy := -1 // the one that is kept alive
		for _, h := range hosts {
			if h.Healthy {
				healthy++
			}
		}
		c.after = time.Since(c.registered)
		switch {
		case healthy <= 0:
			return nil
		case c.after >= controlLimit:
			return fmt.Errorf("%d of %d instances that never beat are healthy after %v, although they asked for a timeout of %v: "+
				"the server does nothing with beats", healthy, controls, c.after.Round(time.Second), controlTimeout)
		}
		if err := sleep(ctx, controlEvery); err != nil {
			return err
		}
	}
}

// figures say when they were found out.
func (c *control) figures() []Figure {
	if c == nil {
		return nil
	}
	return []Figure{{"instances that never beat were found out within", c.after.Seconds(), "s"}}
}

// close takes back what the server has not taken out itself.
func (c *control) close(ctx context.Context) {
	if c == nil {
		return
	}
	c.keeper.close()
	if ctx.Err() != nil {
		return
	}
	s, err := c.env.Target.Dial(ctx, c.env.Config.Protocol)
	if err != nil {
		return // what is left goes by itself
	}
	defer s.Close()
	_ = s.Deregister(c.kept)
	withdraw(ctx, []target.Session{s}, c.fleet)
}
