package ops

import (
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func wireService(k registry.ServiceKey) opsv1.Service {
	return opsv1.Service{Namespace: k.Namespace, Group: k.Group, Service: k.Name}
}

func wireInstance(i *registry.Instance) opsv1.Instance {
	out := opsv1.Instance{
		IP: i.IP, Port: i.Port, Cluster: i.Cluster, Weight: i.Weight,
		Healthy: i.Healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
	}
	if i.Metadata != "" {
		out.Metadata = i.Metadata.Map()
	}
	return out
}

func wireStanding(st *registry.Standing) opsv1.InstanceState {
	out := opsv1.InstanceState{Instance: wireInstance(st.Instance), Owners: make([]opsv1.Owner, 0, len(st.Owners))}
	for _, o := range st.Owners {
		out.Owners = append(out.Owners, opsv1.Owner{Kind: o.Kind.String(), Client: string(o.Client), Agent: o.Agent, Healthy: o.Healthy})
	}
	if st.SinceBeat >= 0 {
		out.SinceBeat = new(st.SinceBeat.Milliseconds())
		out.ExpiresIn = new(max(st.Instance.DeleteTimeout()-st.SinceBeat, 0).Milliseconds())
	}
	if o := st.Override; o != nil {
		out.Override = &opsv1.Override{Weight: o.Weight, Enabled: o.Enabled, App: o.App}
		if o.Metadata != nil {
			out.Override.Metadata = new(o.Metadata.Map())
		}
	}
	return out
}

func wireCause(c registry.Cause) opsv1.Cause {
	out := opsv1.Cause{
		Text: c.String(), Kind: string(c.Kind), API: c.API, Op: c.Op, Actor: c.Actor, Detail: c.Detail,
	}
	if c.From.IsValid() {
		out.From = c.From.String()
	}
	return out
}

func wireEvents(records []ledger.Record) []opsv1.Event {
	out := make([]opsv1.Event, len(records))
	for i := range records {
		out[i] = wireEvent(&records[i])
	}
	return out
}

func wireEvent(r *ledger.Record) opsv1.Event {
	e := &r.Event
	out := opsv1.Event{
		Seq: r.Seq, Time: e.At.Wall, Kind: string(e.Kind), Revision: e.Revision,
		Service: wireService(e.Service), Cause: wireCause(e.Cause), Detail: e.Detail, Lost: r.Count,
	}
	if e.Instance != nil {
		out.Instance = wireChanged(e.Kind, e.Instance)
		out.Owner, out.Client = e.Owner.Kind.String(), string(e.Owner.Client)
	}
	return out
}

// wireChanged returns what an event knows of its instance: see [ledger.Record].
func wireChanged(kind registry.EventKind, i *registry.Instance) *opsv1.ChangedInstance {
	out := &opsv1.ChangedInstance{IP: i.IP, Port: i.Port, Cluster: i.Cluster, Healthy: i.Healthy, Ephemeral: i.Ephemeral}
	if kind == registry.InstanceRemoved || kind == registry.InstanceHealthy || kind == registry.InstanceUnhealthy {
		return out
	}
	out.Weight, out.Enabled = new(i.Weight), new(i.Enabled)
	if i.Metadata != "" {
		out.Metadata = i.Metadata.Map()
	}
	return out
}

func wirePushes(records []ledger.Record) []opsv1.Push {
	out := make([]opsv1.Push, len(records))
	for i := range records {
		r := &records[i]
		e := &r.Event
		out[i] = opsv1.Push{
			Seq: r.Seq, Time: e.At.Wall, Kind: string(e.Kind), Service: wireService(e.Service),
			Revision: e.Revision, Took: millis(e.Took), Problem: e.Detail, Lost: r.Count,
		}
		if e.Subscriber != nil {
			out[i].Subscriber = wireSubscription(e.Subscriber.Protocol, e.Subscriber.SubscriberKey)
		}
	}
	return out
}

func wireSubscription(protocol registry.Protocol, k registry.SubscriberKey) opsv1.Subscription {
	return opsv1.Subscription{
		Protocol: string(protocol), Address: k.Addr.String(), Client: string(k.Client),
		Agent: k.Agent, Clusters: k.Clusters,
	}
}

// millis returns a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
