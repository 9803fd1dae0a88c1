package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// measureMemory holds a large registry of ephemeral instances that all beat, as
// clients of the 1.x age do, and measures its memory, what its processor time goes
// into, and what the checks for expiry have of it.
func measureMemory(ctx context.Context, b *bench) ([]table, error) {
	sizes := table{marker: "memory", head: []string{
		"Registry", "just filled", "after a snapshot", "an instance", "of it in files",
	}}
	expiry := table{marker: "expiry", head: []string{"Registry", "Beats/s", "Server CPU", "of it expiry", "of it snapshots"}}
	for _, distinct := range []bool{false, true} {
		p := &population{prefix: "svc-", services: b.instances / 10, each: 10, distinct: distinct}
		title := fmt.Sprintf("%s instances, 10 a service", thousands(float64(b.instances)))
		if distinct {
			title += ", no two with equal metadata"
		}
		progress("memory: %s", title)
		h, err := b.holdPopulation(ctx, p)
		if err != nil {
			return nil, err
		}
		sizes.rows = append(sizes.rows, []string{
			title, mebibytes(h.filled.resident), mebibytes(h.settled.resident),
			fmt.Sprintf("%.0f B", float64(h.settled.resident-h.empty.resident)/float64(b.instances)),
			mebibytes(h.settled.resident - h.settled.anonymous),
		})
		if !distinct {
			expiry.rows = append(expiry.rows, []string{
				title, thousands(h.beats), percent(h.busy), percent(h.busy * h.expiry), percent(h.busy * h.snapshots),
			})
			expiry.listing = h.profile
		}
		if len(sizes.rows) == 1 {
			sizes.rows = append([][]string{{"empty", mebibytes(h.empty.resident), "", "", mebibytes(h.empty.resident - h.empty.anonymous)}}, sizes.rows...)
		}
	}
	return []table{sizes, expiry}, nil
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// held is what holding a population measured.
type held struct {
	empty, filled memory
	settled       memory // after beats for a while, and a snapshot
	beats         float64
	busy          float64 // of a core
	expiry        float64 // share of the profile
	snapshots     float64
	profile       string
}

// holdTime is how long the beats go on: long enough for each instance to have
// been judged by the wheel, and for the snapshot of each minute.
const holdTime = 75 * time.Second

func (b *bench) holdPopulation(ctx context.Context, p *population) (h held, err error) {
	profiles, err := freePort()
	if err != nil {
		return h, err
	}
	server, err := b.newServer(ctx, "--pprof-listen", profiles)
	if err != nil {
		return h, err
	}
	defer server.end()
	if h.empty, err = server.memory(); err != nil {
		return h, err
	}
	k := &keeper{server: server, populations: []*population{p}}
	if err := k.fill(ctx); err != nil {
		return h, err
	}
	if h.filled, err = server.memory(); err != nil {
		return h, err
	}
	f, err := dial(server.address, b.conns)
	if err != nil {
		return h, err
	}
	defer f.close()
	profile := b.profile(ctx, profiles, holdTime-5*time.Second)
	r, sent, err := b.measureRound(server, f, p.beat(false), 0, paced(p.size()/5, holdTime))
	if err != nil {
		return h, err
	}
	h.beats, h.busy = r.perSecond, r.cpu*r.perSecond/1e6
	if sent < p.size() {
		return h, fmt.Errorf("only %d beats were sent", sent)
	}
	if h.settled, err = server.memory(); err != nil {
		return h, err
	}
	top := <-profile
	if top.err != nil {
		return h, top.err
	}
	h.profile = top.summary()
	h.expiry = top.share("health.(*Expirer).Run")
	h.snapshots = top.share("recovery.(*Keeper).Run")
	return h, k.verify(p)
}

// verify checks that every instance is there and healthy.
func (k *keeper) verify(p *population) error {
	body, err := ask(k.server.address, get("/nacos/v1/ns/operator/metrics"), 0)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`"instanceCount":%d`, p.size()); !bytes.Contains(body, []byte(want)) {
		return fmt.Errorf("the server holds something else than %s: %s", want, body)
	}
	for n := range 100 {
		body, err := ask(k.server.address, p.list(), n*p.services/100)
		if err != nil {
			return err
		}
		if bytes.Count(body, []byte(`"healthy":true`)) != p.each {
			return fmt.Errorf("not all instances are healthy: %.400s", body)
		}
	}
	return nil
}
