package consensus

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Propose stores cmd and returns what the state machine answered to it. When
// it returns without error, the change is on disk and applied. It takes
// ownership of cmd, even when it fails.
//
// It blocks for one commit (a sync of the disk, shared by all proposals that
// wait at the time), or until ctx ends. [ErrUncertain], which also wraps the
// error of ctx, says that nobody knows whether cmd will take effect. All other
// errors say that it will not: [ErrTooLarge], [ErrNoLeader], [ErrClosed], and
// the [*store.DiskError] of a disk that refused it.
func (l *Log) Propose(ctx context.Context, cmd []byte) (any, error) {
	if len(cmd) > MaxCommand {
		return nil, ErrTooLarge
	}
	n, leave, err := l.enter()
	if err != nil {
		return nil, err
	}
	if n.raft.State() != raft.Leader {
		leave()
		return nil, l.noLeader()
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	// The library's wait does not know of ctx. Its goroutine ends with the
	// commit or with the library, and holds a slot until then.
	result := make(chan proposal, 1)
	go func() {
		defer leave()
		defer func() { <-l.slots }()
		future := n.raft.Apply(cmd, 0)
		err := future.Error()
		if err != nil {
			result <- proposal{err: l.explain(err)}
			return
		}
		result <- proposal{answer: future.Response()}
	}()
	select {
	case p := <-result:
		return p.answer, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
	}
}

// proposal is how one ended.
type proposal struct {
	answer any
	err    error
}

// noLeader says why nobody takes proposals: the disk, if it is to blame.
func (l *Log) noLeader() error {
	if err := l.disk.get(); err != nil {
		return err
	}
	return ErrNoLeader
}

// explain turns the library's errors into ours.
func (l *Log) explain(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return l.noLeader()
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}
