package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// upheavalKinds are the workloads of clients to whom something happens.
func upheavalKinds() []Kind {
	return []Kind{
		{
			Name: "storm", Summary: "all clients lose their connection and come back at once",
			Defaults: Config{Services: 100, Instances: 10, Count: 3, Duration: time.Minute},
			Check:    (*Config).boundClients, New: func(e *Env) Workload { return &storm{Env: e} },
		},
		{
			Name: "restart", Summary: "the server is restarted by a command while clients live on",
			Defaults: Config{Services: 20, Instances: 5, Count: 1, Duration: time.Minute},
			Check:    (*Config).boundClients, Restarts: true, New: func(e *Env) Workload { return &restart{Env: e} },
		},
		{
			Name: "rollout", Summary: "services are deployed: each instance is drained, stopped and started anew",
			Defaults: Config{Services: 20, Instances: 5, Subscribers: 200, Duration: time.Minute, Drain: 500 * time.Millisecond},
			Check:    oneRollout, Workers: func(c *Config) int { return c.Services }, New: func(e *Env) Workload { return &rollout{Env: e} },
		},
	}
}

// storm has clients, each with an instance and a subscription, that all come back at
// the same moment.
type storm struct {
	*Env
	clients []*client
	watch   watch
	pulse   *pulse // of the instances, which are registered and do not beat; nil over gRPC
	back    *load.Series
}

func (s *storm) Prepare(ctx context.Context) error {
	f := s.fleet("storm", s.Config.Services, s.Config.Instances, 1)
	s.clients = s.crowd(f, &s.watch)
	s.back = s.Rec.Series("connection lost to registered and subscribed")
	if s.Config.Protocol == target.HTTP {
		s.pulse = s.newPulse(f.Len(), usualTimeout)
	}
	return parallel(ctx, len(s.clients), func(_ context.Context, n int) error {
		err := s.clients[n].join(ctx)
		if err == nil {
			s.pulse.beaten(n)
		}
		return err
	})
}

// stormTime bounds how long clients try to come back.
const stormTime = time.Minute

func (s *storm) Step(ctx context.Context, _, _ int) error {
	_ = all(s.clients, func(c *client) error {
		c.leave()
		s.pulse.away(c.instance.Index())
		return nil
	})
	lost := s.Rec.Now()
	trying, cancel := context.WithTimeout(ctx, stormTime)
	defer cancel()
	return all(s.clients, func(c *client) error {
		err := c.rejoin(ctx, trying)
		if err == nil {
			s.back.Record(c.instance.N, lost, s.Rec.Now())
			s.pulse.beaten(c.instance.Index())
		}
		return err
	})
}

func (s *storm) Verify(ctx context.Context) (Checked, error) {
	checked, err := s.verifyWhole(ctx, s.clients[0].instance.Fleet)
	if err != nil {
		return checked, s.pulse.judge(fmt.Errorf("after the storm: %w", err))
	}
	checked.Subscribers = len(s.clients)
	return checked, nil
}

func (s *storm) Close(ctx context.Context) { s.dismiss(ctx, s.clients) }
