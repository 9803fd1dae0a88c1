package legacy

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// mode is who watches over the instances of a service: 0.9 has it as two
// settings of the service. Where clients beat, instances are ephemeral; where they
// do not, instances are persistent, and the servers probe them or nobody does.
type mode struct{ beats, probes bool }

// unwatched is the mode in which health is set by hand.
var unwatched = mode{}

// modeOf returns the mode of a service, which need not be there.
func modeOf(view *registry.View) mode {
	if view == nil || view.Info.Legacy == nil {
		return mode{beats: true}
	}
	return mode{beats: !view.Info.Legacy.DisableClientBeat, probes: view.Info.Legacy.EnableHealthCheck}
}

// unwatch and watch turn the probe of a cluster off and on. One that is off keeps
// its settings, by which it is known when it is turned on again.
func unwatch(c *registry.Cluster) { c.Checker.Type = registry.CheckNone }

func watch(c *registry.Cluster) { c.Checker.Type = formerType(c.Checker) }

func formerType(c registry.HealthCheck) registry.CheckType {
	switch {
	case c.Type != registry.CheckNone:
		return c.Type
	case c.ExpectedCode != 0:
		return registry.CheckHTTP
	case c.Command != "":
		return registry.CheckMySQL
	default:
		return registry.CheckTCP
	}
}

// enter makes the instances and clusters of a service, as they were in view, those
// of another mode.
func (a *API) enter(ctx context.Context, by registry.Cause, view *registry.View, to mode) error {
	from := modeOf(view)
	if (from == unwatched) != (to == unwatched) {
		change := watch
		if to == unwatched {
			change = unwatch
		}
		for _, c := range view.Clusters {
			if err := a.core.SetCluster(ctx, by, view.Key, c.Name, change); err != nil {
				return err
			}
		}
	}
	if from.beats == to.beats {
		return nil
	}
	for _, i := range view.Instances {
		if err := a.keepBy(ctx, by, view.Key, *i, to.beats); err != nil {
			return err
		}
	}
	return nil
}

// keepBy has an instance kept alive by beats instead of the durable store, or the
// other way round. One that has neither owner is a connection's, and stays.
func (a *API) keepBy(ctx context.Context, by registry.Cause, key registry.ServiceKey, i registry.Instance, beats bool) error {
	owner := registry.OwnerHTTP
	if beats {
		owner = registry.OwnerDurable
	}
	if !a.core.Store().HasOwner(key, i.Key(), owner) {
		return nil
	}
	i.Ephemeral = beats
	if err := a.core.Register(ctx, by, naming.Registration{Service: key, Instance: i}); err != nil {
		return err
	}
	return a.core.Deregister(ctx, by, key, i.Key(), !beats)
}
