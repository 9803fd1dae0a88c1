package health

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// target is one persistent instance with what its probes found. The service it
// belongs to is part of what it is: the same address in two namespaces is two
// targets. It belongs to the goroutine of [Checker.Run].
type target struct {
	service *watched
	key     registry.InstanceKey // the address canonical
	cluster *registry.Cluster
	healthy bool // what the durable store's registration is said to be
	streak  int  // results in a row that say otherwise
	period  time.Duration
	due     time.Time
	place   int     // in the agenda, or nowhere
	flight  *flight // the probe that runs, nil when none does
}

// flight is one running probe.
type flight struct {
	target *target
	cancel context.CancelFunc
	probe  probe.Target
	result probe.Result // set by the worker before it lands
	took   time.Duration
}

// watched is a service with targets.
type watched struct {
	key     registry.ServiceKey
	targets []*target
	readAt  time.Time // when the store was asked last
}

// aim returns what to probe. MYSQL ignores the cluster's check port, as in Nacos.
func (t *target) aim() probe.Target {
	aim := probe.Target{Host: t.key.IP, Port: t.key.Port, Check: t.cluster.Checker}
	if !t.cluster.UseInstancePort && aim.Check.Type != registry.CheckMySQL {
		aim.Port = t.cluster.CheckPort
	}
	return aim
}

// judge counts an outcome and reports whether it flips the target's health:
// times in a row must agree, but a refusal is final.
// Source: Nacos HealthCheckCommon.checkOK, checkFail and checkFailNow.
func (t *target) judge(o probe.Outcome, times int) bool {
	if up := o == probe.Up; up == t.healthy {
		t.streak = 0
		return false
	}
	t.streak++
	return t.streak >= times || o == probe.Refused
}

// ground cancels the probe that runs: its result does not count any more.
func (t *target) ground() {
	if t.flight != nil {
		t.flight.cancel()
		t.flight = nil
	}
}
