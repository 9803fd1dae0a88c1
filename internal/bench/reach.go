package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// silent is why servers do not answer, by server and protocol.
type silent map[*target.Target]map[target.Protocol]error

// reach asks each server once by each protocol of the work, all at the same time, so that
// one that does not answer is no matter of many timeouts. The error is that of a server
// that answers by none, or of ctx.
func reach(ctx context.Context, targets []*target.Target, work []workload.Config) (silent, error) {
	protocols := map[target.Protocol]bool{}
	for i := range work {
		protocols[work[i].Protocol] = true
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	faults := silent{}
	for _, t := range targets {
		faults[t] = map[target.Protocol]error{}
		for p := range protocols {
			asking.Go(func() {
				if err := t.Reach(ctx, p); err != nil {
					mu.Lock()
					defer mu.Unlock()
					faults[t][p] = err
				}
			})
		}
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var errs []error
	for _, t := range targets {
		if of := faults[t]; len(of) == len(protocols) && len(of) > 0 {
			errs = append(errs, unanswered(t, of))
		}
	}
	return faults, errors.Join(errs...)
}

// unanswered says that a server answers by no protocol, and why.
func unanswered(t *target.Target, of map[target.Protocol]error) error {
	err := fmt.Errorf("%s does not answer, so that nothing was measured", t.Name)
	for _, p := range []target.Protocol{target.HTTP, target.GRPC} {
		if why := of[p]; why != nil {
			err = fmt.Errorf("%w; via %s: %w", err, p, why)
		}
	}
	return err
}
