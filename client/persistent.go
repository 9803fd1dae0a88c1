package rollcall

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// instanceID names an instance of a service.
type instanceID struct {
	service wire.Service
	key     wire.Key
}

// addPersistent makes a persistent registration wanted. All registrations of one instance
// share a job, so that no request about it overtakes another. The caller holds mu.
func (c *Client) addPersistent(r *Registration) {
	id := instanceID{r.service, r.key}
	if before := c.persistent[id]; before != nil {
		r.job = before.job
		r.replace(before)
	} else {
		r.job = c.queue.Job(schedule.High, func(ctx context.Context) time.Duration { return c.runPersistent(ctx, id) })
	}
	c.persistent[id] = r
}

// runPersistent makes a persistent instance true, once: no session carries it.
func (c *Client) runPersistent(ctx context.Context, id instanceID) time.Duration {
	c.mu.Lock()
	r := c.persistent[id]
	if r == nil {
		c.mu.Unlock()
		return schedule.Idle
	}
	want, version, removed := r.want, r.version, r.removed
	finished := r.gone || !removed && r.goodVersion == version || removed && c.isClosed()
	if removed && r.tried == "" {
		c.forgetPersistent(r) // no server has heard of it
		finished = true
	}
	wait := time.Duration(0)
	if r.refused && !removed {
		wait = refusedPause - time.Since(r.refusedAt)
	}
	if !finished && wait <= 0 {
		r.tried = anySession
	}
	c.mu.Unlock()
	switch {
	case finished:
		return schedule.Idle
	case wait > 0:
		return wait
	}
	t := c.plain
	if l := c.link.Load(); l != nil && l.session.Persistent {
		t = l.transport
	}
	ctx, cancel := context.WithTimeout(ctx, operation)
	defer cancel()
	var err error
	if removed {
		err = t.DeregisterPersistent(ctx, r.service, want)
	} else {
		err = t.RegisterPersistent(ctx, r.service, want)
	}
	c.noteRefusal("register", r.service, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changes.send()
	switch {
	case removed && (err == nil || wire.KindOf(err) == wire.NotFound):
		c.forgetPersistent(r)
		return schedule.Idle
	case err == nil:
		r.failures = 0
		r.has(version, "")
		return 0 // something may have changed meanwhile
	case r.givenUp(err) && !removed && version == r.version:
		return c.refusePersistent(r, err)
	}
	r.failures++
	r.failed(err)
	if removed && wire.Final(err) {
		return refusedPause
	}
	return c.cfg.backoff.Delay(r.failures)
}

// anySession stands for the session of what no session carries.
const anySession = "any"

// forgetPersistent ends a persistent registration that no server has any more. The caller
// holds mu.
func (c *Client) forgetPersistent(r *Registration) {
	r.gone = true
	if id := (instanceID{r.service, r.key}); c.persistent[id] == r {
		delete(c.persistent, id)
		r.job.Stop()
	}
	r.changed.send()
}

// refusePersistent takes back what a server refuses for good.
func (c *Client) refusePersistent(r *Registration, err error) time.Duration {
	r.failed(err)
	switch {
	case r.goodVersion > 0:
		r.refuse(err)
		r.set(RegState{Phase: Registered})
	case r.async:
		r.refused, r.refusedAt, r.tried = true, time.Now(), ""
		r.changed.send()
		return refusedPause
	default:
		r.refuse(err)
		r.removed = true
		r.set(RegState{Phase: Removed, Err: err})
		c.forgetPersistent(r)
	}
	r.changed.send()
	return schedule.Idle
}
