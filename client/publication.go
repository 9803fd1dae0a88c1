package rollcall

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// The bounds of operations of the engine.
const (
	// operation bounds one attempt to publish or subscribe, however many requests of
	// the protocol it takes.
	operation = 15 * time.Second
	// refusedPause is how long what a server refused for good is left alone.
	refusedPause = 30 * time.Second
)

// publication is what the client wants to have registered of one service. Its fields
// are guarded by Client.mu.
type publication struct {
	client  *Client
	service wire.Service
	job     *schedule.Job

	wanted  map[wire.Key]*Registration
	leaving []*Registration // removed, and not known to be gone

	generation uint64 // grows with each change of what is wanted
	done       uint64 // the last one that a server has
	session    string // on which it has it
	answered   string // the session on which Publish last returned
	failures   int
	// cautious: the server refused a set with several unproven instances, so that
	// they are tried one by one to find the bad one.
	cautious bool
}

// publication returns the publication of a service. The caller holds mu.
func (c *Client) publication(s wire.Service) *publication {
	p := c.publications[s]
	if p == nil {
		p = &publication{client: c, service: s, wanted: make(map[wire.Key]*Registration)}
		p.job = c.queue.Job(schedule.High, p.run)
		c.publications[s] = p
	}
	return p
}

// add makes a registration wanted. The caller holds mu.
func (p *publication) add(r *Registration) {
	if before := p.wanted[r.key]; before != nil {
		r.replace(before)
	}
	p.leaving = slices.DeleteFunc(p.leaving, func(before *Registration) bool {
		same := before.key == r.key
		if same {
			r.replace(before)
		}
		return same
	})
	p.wanted[r.key] = r
	p.generation++
	r.job = p.job
}

// leave makes a registration of those that are wanted unwanted. The caller holds mu.
func (p *publication) leave(r *Registration) {
	delete(p.wanted, r.key)
	p.generation++
	p.job.Wake()
	if r.tried == "" {
		r.gone = true // no server has heard of it
		return
	}
	p.leaving = append(p.leaving, r)
}

// attempt is what one Publish is about.
type attempt struct {
	link       *link
	generation uint64
	instances  []wire.Instance
	versions   map[*Registration]uint64 // of what of each registration is in the set
	leaving    []*Registration          // gone when it succeeds
	strays     []*Registration          // to be removed beyond that; see reclaim
	complete   bool                     // the set is all that is wanted
}

// run makes the server hold what is wanted.
func (p *publication) run(ctx context.Context) time.Duration {
	a, next := p.begin()
	if a == nil {
		return next
	}
	ctx, cancel := context.WithTimeout(ctx, operation)
	defer cancel()
	started := time.Now()
	var err error
	if len(a.strays) > 0 {
		err = p.reclaim(ctx, a)
	} else {
		err = a.link.transport.Publish(ctx, p.service, a.instances)
	}
	p.client.done("publish", p.service, started, err)
	if len(a.strays) > 0 {
		return p.reclaimed(a, err)
	}
	return p.end(a, err)
}

// begin returns what is to be done, nil if nothing is.
func (p *publication) begin() (*attempt, time.Duration) {
	c := p.client
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link.Load()
	switch {
	case c.isClosed():
		return nil, schedule.Idle
	case l == nil:
		p.retrying(*c.lastError.Load())
		return nil, schedule.Idle // woken when there is one
	}
	if len(p.wanted)+len(p.leaving) == 0 && p.answered != l.session.ID { // this session has nothing to hear
		p.session, p.done, p.answered = l.session.ID, p.generation, l.session.ID
		c.changes.send()
	}
	strays := p.strays(l.session.ID)
	settled := p.session == l.session.ID && p.done == p.generation
	if settled && len(strays) == 0 {
		p.restored(l)
		return nil, p.rest()
	}
	a := p.attempt(l)
	if settled { // first what is wanted
		a.strays = strays
	}
	return a, 0
}

// attempt returns what is to be published: all that is wanted and may be good. The caller
// holds mu.
func (p *publication) attempt(l *link) *attempt {
	a := &attempt{link: l, generation: p.generation, complete: true, versions: make(map[*Registration]uint64)}
	for _, r := range p.leaving {
		if r.tried == l.session.ID {
			a.leaving = append(a.leaving, r)
		}
	}
	unproven := 0
	for _, r := range p.wanted {
		if r.refused {
			continue // it has never been good
		}
		i, version := r.want, r.version
		if !r.proven() {
			if unproven++; p.cautious && unproven > 1 {
				i, version, a.complete = r.good, r.goodVersion, false
			}
		}
		if version > 0 {
			a.instances = append(a.instances, i)
			a.versions[r] = version
			r.tried = l.session.ID
		}
	}
	return a
}

// restored notes that a session which seemed to be lost is there again, with all that
// was published on it.
func (p *publication) restored(l *link) {
	for _, r := range p.wanted {
		if r.proven() && r.state.Load().Phase == Retrying {
			r.has(r.version, l.session.ID)
			p.client.changes.send()
		}
	}
}

// rest says when to run again although all is well. An empty publication is
// forgotten.
func (p *publication) rest() time.Duration {
	if len(p.leaving) > 0 {
		return 0 // strays
	}
	if len(p.wanted) == 0 {
		delete(p.client.publications, p.service)
		p.job.Stop()
	}
	next := schedule.Idle
	for _, r := range p.wanted {
		if !r.refused {
			continue
		}
		if left := refusedPause - time.Since(r.refusedAt); left > 0 {
			if next == schedule.Idle || left < next {
				next = left
			}
			continue
		}
		r.refused = false
		p.generation++
		return 0
	}
	return next
}

// end takes the result of an attempt and returns when to try again.
func (p *publication) end(a *attempt, err error) time.Duration {
	c := p.client
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changes.send()
	p.answered = a.link.session.ID
	part, _ := errors.AsType[*wire.PartError](err)
	failed := func(r *Registration) error {
		if part != nil {
			return part.Failed[r.key]
		}
		return err
	}
	for r, version := range a.versions {
		if failed(r) == nil {
			r.has(version, a.link.session.ID)
		}
	}
	if err == nil {
		p.gone(a.leaving)
		p.failures = 0
		if a.complete {
			p.session, p.done, p.cautious = a.link.session.ID, a.generation, false
		}
		if p.done == p.generation {
			return p.rest()
		}
		return 0
	}
	for _, r := range a.leaving {
		r.failed(err)
	}
	c.logger.Warn("publish", "namespace", p.service.Namespace, "group", p.service.Group, "service", p.service.Name, "err", err)
	p.failures++
	if p.blame(a, failed) {
		return 0
	}
	return c.cfg.backoff.Delay(p.failures)
}

// blame deals with what failed, and reports whether something changed that makes it
// worth trying again at once. Only what a server never accepted can be what it refuses:
// that is given up if someone waits for it, and else, if it is for good, left alone for a
// while.
func (p *publication) blame(a *attempt, failed func(*Registration) error) (again bool) {
	var unproven []*Registration
	for r, version := range a.versions {
		err := failed(r)
		if err == nil {
			continue
		}
		r.failed(err)
		if r.givenUp(err) && version == r.version && !r.proven() {
			unproven = append(unproven, r)
		}
	}
	if len(unproven) > 1 && !p.cautious && !individual(failed, unproven) {
		p.cautious = true
		return true
	}
	for _, r := range unproven {
		p.refuse(r, failed(r))
		again = true
	}
	return again
}

// individual reports whether the failures are known one by one.
func individual(failed func(*Registration) error, regs []*Registration) bool {
	for _, r := range regs[1:] {
		if failed(r) != failed(regs[0]) { //nolint:errorlint // one error for all, or one for each
			return true
		}
	}
	return false
}

// givenUp reports whether a refusal ends an attempt of somebody who waits, or has something
// left alone for a while that nobody waits for.
func (r *Registration) givenUp(err error) bool {
	if r.async && r.goodVersion == 0 {
		return wire.Final(err)
	}
	return wire.Refused(err)
}

// refuse takes back what a server refuses.
func (p *publication) refuse(r *Registration, err error) {
	p.generation++
	switch {
	case r.goodVersion > 0: // an update; what was before is good
		r.refuse(err)
	case r.async:
		r.refused, r.refusedAt, r.tried = true, time.Now(), ""
	default:
		delete(p.wanted, r.key)
		r.refuse(err)
		r.set(RegState{Phase: Removed, Err: err})
	}
	r.changed.send()
}

// retrying marks what is not registered. The caller holds mu.
func (p *publication) retrying(err error) {
	for _, r := range p.wanted {
		r.failed(err)
	}
}

// gone tells who waits that instances are not registered any more.
func (p *publication) gone(left []*Registration) {
	for _, r := range left {
		r.gone = true
		r.changed.send()
	}
	p.leaving = slices.DeleteFunc(p.leaving, func(r *Registration) bool { return r.gone })
}

// endRegistrations marks all registrations as removed when the client closes.
func (c *Client) endRegistrations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.publications {
		for _, r := range slices.AppendSeq(p.leaving, maps.Values(p.wanted)) {
			r.end(ErrClosed)
		}
	}
	for _, r := range c.persistent {
		r.end(ErrClosed)
	}
}
