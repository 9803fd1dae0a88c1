package main

import (
	"context"
	"fmt"
	"time"
)

// workload is one kind of request that is measured.
type workload struct {
	title string
	*call
	conns int
	// fresh requests never repeat a number; undo takes back what they did, and is
	// measured as well.
	fresh bool
	undo  *call
}

// The populations of the server that requests are measured on.
func smallServices() *population   { return &population{prefix: "one-", services: 1000, each: 1} }
func usualServices() *population   { return &population{prefix: "ten-", services: 1000, each: 10} }
func largeServices() *population   { return &population{prefix: "thousand-", services: 4, each: 1000} }
func growingServices() *population { return &population{prefix: "new-", each: 10} }

func (b *bench) workloads() []workload {
	usual, growing := usualServices(), growingServices()
	return []workload{
		{title: "light beat", call: usual.beat(false), conns: b.conns},
		{title: "full beat", call: usual.beat(true), conns: b.conns},
		{title: "list of 1", call: smallServices().list(), conns: b.conns},
		{title: "list of 10", call: usual.list(), conns: b.conns},
		// Few connections: an answer is larger than a socket's buffer.
		{title: "list of 1,000", call: largeServices().list(), conns: 8},
		{title: "register again", call: usual.register(), conns: b.conns},
		{title: "register new", call: growing.register(), conns: b.conns, fresh: true, undo: growing.deregister()},
	}
}

// The contenders beside Rollcall. A server that does nothing answers ok, or with a
// body of the length of the real one.
const (
	nothingOK   = "httpapi, ok"
	nothingSame = "httpapi, same length"
	nothingFast = "fasthttp, same length"
)

// contender is a server under one workload.
type contender struct {
	*process
	call, undo *call
	rounds     []round
	undone     []round // rounds of undo
	next       int     // number of the next fresh request
}

// contest is one workload with all its contenders.
type contest struct {
	workload
	contenders []*contender // Rollcall first
}

func measureRequests(ctx context.Context, b *bench) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	keep := &keeper{server: server, populations: []*population{smallServices(), usualServices(), largeServices()}}
	if err := keep.fill(ctx); err != nil {
		return nil, err
	}
	var contests []*contest
	for _, w := range b.workloads() {
		c, err := b.contest(ctx, server, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.title, err)
		}
		defer c.end()
		contests = append(contests, c)
	}
	for n := range b.rounds {
		progress("requests: round %d of %d", n+1, b.rounds)
		for _, c := range contests {
			if err := b.roundOf(ctx, c, n); err != nil {
				return nil, fmt.Errorf("%s: %w", c.title, err)
			}
			if err := keep.beat(ctx); err != nil {
				return nil, err
			}
		}
	}
	return []table{requestsTable(contests)}, nil
}

// contest starts the contenders of a workload.
func (b *bench) contest(ctx context.Context, server *process, w workload) (*contest, error) {
	body, err := ask(server.address, w.call, 0)
	if err != nil {
		return nil, err
	}
	c := &contest{workload: w, contenders: []*contender{{process: server, call: w.call, undo: w.undo, next: 1}}}
	for _, nothing := range []struct {
		name, stack string
		body        []byte
	}{{nothingOK, stackOurs, []byte("ok")}, {nothingSame, stackOurs, body}, {nothingFast, stackFast, body}} {
		p, err := b.startNothing(ctx, nothing.name, nothing.stack, nothing.body)
		if err != nil {
			c.end()
			return nil, err
		}
		n := &contender{process: p, call: w.same(nothing.body)}
		if w.undo != nil {
			n.undo = w.undo.same(nothing.body)
		}
		c.contenders = append(c.contenders, n)
	}
	return c, nil
}

// end kills the servers that do nothing.
func (c *contest) end() {
	for _, n := range c.contenders[1:] {
		n.end()
	}
}

// roundOf measures each contender once, beginning with another one each time.
func (b *bench) roundOf(ctx context.Context, c *contest, n int) error {
	for i := range c.contenders {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.measureContender(c, c.contenders[(n+i)%len(c.contenders)]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureContender(c *contest, n *contender) error {
	f, err := dial(n.address, c.conns)
	if err != nil {
		return err
	}
	defer f.close()
	first := n.next
	warm, err := f.drive(n.call, first, lasting(b.length/8))
	if err != nil {
		return err
	}
	r, sent, err := b.measureRound(n.process, f, n.call, first+warm, lasting(b.length))
	if err != nil {
		return err
	}
	n.rounds = append(n.rounds, r)
	n.next += warm + sent
	if c.undo == nil {
		return nil
	}
	if _, err := f.drive(n.undo, first, func(done int) bool { return done < warm }); err != nil {
		return err
	}
	r, _, err = b.measureRound(n.process, f, n.undo, first+warm, func(done int) bool { return done < sent })
	n.undone = append(n.undone, r)
	return err
}

// keeper keeps the instances of a server alive.
type keeper struct {
	server      *process
	populations []*population
	last        time.Time
}

// keepEvery is well below the 15 s after which an instance is unhealthy.
const keepEvery = 8 * time.Second

// fill registers all instances and looks every service up once.
func (k *keeper) fill(ctx context.Context) error {
	k.last = time.Now()
	return k.all(ctx, func(f *fleet, p *population) error {
		if err := f.each(ctx, p.register(), 0, p.size()); err != nil {
			return err
		}
		return f.each(ctx, p.list(), 0, p.services)
	})
}

// beat beats for all instances, if that was long enough ago.
func (k *keeper) beat(ctx context.Context) error {
	if time.Since(k.last) < keepEvery {
		return nil
	}
	k.last = time.Now()
	return k.all(ctx, func(f *fleet, p *population) error { return f.each(ctx, p.beat(false), 0, p.size()) })
}

func (k *keeper) all(ctx context.Context, do func(*fleet, *population) error) error {
	f, err := dial(k.server.address, 64)
	if err != nil {
		return err
	}
	defer f.close()
	for _, p := range k.populations {
		if err := do(f, p); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func requestsTable(contests []*contest) table {
	t := table{
		marker: "requests",
		head: []string{
			"Request", "Requests/s", "Server CPU", "Nothing, `ok`", "ratio", "Nothing, same length", "ratio",
			"fasthttp, same length", "requests/s", "our share",
		},
	}
	for _, c := range contests {
		t.rows = append(t.rows, requestsRow(c.title, c.contenders, func(n *contender) []round { return n.rounds }))
		if c.undo != nil {
			t.rows = append(t.rows, requestsRow(c.undo.name, c.contenders, func(n *contender) []round { return n.undone }))
		}
	}
	return t
}

func requestsRow(title string, contenders []*contender, rounds func(*contender) []round) []string {
	ours, ok, same, fast := rounds(contenders[0]), rounds(contenders[1]), rounds(contenders[2]), rounds(contenders[3])
	micros := func(list []round) string { return fmt.Sprintf("%.1f µs", median(pick(list, cpuOf))) }
	persec := func(list []round) string { return thousands(median(pick(list, perSecond))) }
	return []string{
		title, persec(ours), micros(ours),
		micros(ok), fmt.Sprintf("%.2f", ratio(ours, ok, cpuOf)),
		micros(same), fmt.Sprintf("%.2f", ratio(ours, same, cpuOf)),
		micros(fast), persec(fast), fmt.Sprintf("%.0f %%", 100*ratio(ours, fast, perSecond)),
	}
}
