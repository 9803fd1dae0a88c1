package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// learnedWithin is for how long after a change its pushes are looked for. A
	// push waits for half a second at most by default and is given up twenty
	// seconds after it was sent.
	learnedWithin = time.Minute
	// maxPushRecords bounds how many records of pushes are looked at.
	maxPushRecords = 20_000
)

// subscribers says of each subscriber of a service how it stands with a change,
// which may be nil, and adds those that were pushed it and have left.
func (a *API) subscribers(ctx context.Context, key registry.ServiceKey, change *ledger.Record) ([]opsv1.Subscriber, error) {
	told, err := a.told(ctx, key, change)
	if err != nil {
		return nil, err
	}
	out := []opsv1.Subscriber{}
	for _, s := range a.cfg.Naming.Store().Subscribers(key) {
		receipt := s.Receipt()
		sub := opsv1.Subscriber{
			Subscription: wireSubscription(s.Protocol, s.SubscriberKey), Since: s.Since.Wall, Refused: s.Refused,
			Acknowledged: receipt.Revision, Failed: receipt.Failed,
		}
		sub.Learned = learned(s, receipt, told[sub.Subscription], change)
		delete(told, sub.Subscription)
		out = append(out, sub)
	}
	for _, s := range slices.SortedFunc(maps.Keys(told), compareSubscription) {
		out = append(out, opsv1.Subscriber{Subscription: s, Gone: true, Learned: told[s]})
	}
	return out, nil
}

func compareSubscription(a, b opsv1.Subscription) int {
	return cmp.Or(
		cmp.Compare(a.Address, b.Address), cmp.Compare(a.Client, b.Client),
		cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Clusters, b.Clusters),
	)
}

// told returns what the history of pushes says of a change. Who acknowledged a
// later revision has learned of the change as well.
func (a *API) told(ctx context.Context, key registry.ServiceKey, change *ledger.Record) (map[opsv1.Subscription]opsv1.Learned, error) {
	told := map[opsv1.Subscription]opsv1.Learned{}
	if a.cfg.Pushes == nil || change == nil {
		return told, nil
	}
	at := time.UnixMilli(change.Event.At.Wall)
	f := ledger.Filter{
		Namespace: key.Namespace, Group: key.Group, Service: key.Name,
		Since: at, Until: at.Add(learnedWithin), Kinds: pushKinds(), OldestFirst: true, Limit: ledger.MaxLimit,
	}
	for seen := 0; seen < maxPushRecords; {
		page, err := a.cfg.Pushes.Query(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			note(told, &page.Records[i].Event, change)
		}
		if !page.Truncated {
			break
		}
		seen += max(len(page.Records), maxPushRecords/maxPages)
		f.After = page.Cursor
	}
	return told, nil
}

// note adds what one record of a push says of a change: the first acknowledgement
// counts, or else the last failure.
func note(told map[opsv1.Subscription]opsv1.Learned, e *registry.Event, change *ledger.Record) {
	if e.Subscriber == nil || e.Revision < change.Event.Revision {
		return
	}
	s := wireSubscription(e.Subscriber.Protocol, e.Subscriber.SubscriberKey)
	if told[s].State == opsv1.Acknowledged {
		return
	}
	if e.Kind == registry.PushFailed {
		told[s] = opsv1.Learned{State: opsv1.Failed, Time: e.At.Wall, Problem: e.Detail}
		return
	}
	told[s] = opsv1.Learned{State: opsv1.Acknowledged, Time: e.At.Wall, Took: millis(e.Took)}
}

// learned says how a subscriber stands with a change. The history knows the time
// of the first acknowledgement; the subscriber itself only that of the latest.
func learned(s *registry.Subscriber, receipt registry.Receipt, told opsv1.Learned, change *ledger.Record) opsv1.Learned {
	switch {
	case change == nil:
		return opsv1.Learned{State: opsv1.Unknown}
	case s.Refused != "":
		return opsv1.Learned{State: opsv1.NeverPushed, Problem: s.Refused}
	case told.State == opsv1.Acknowledged:
		return told
	case receipt.Revision >= change.Event.Revision:
		return opsv1.Learned{State: opsv1.Acknowledged, Time: receipt.At}
	case told.State != "":
		return told
	case receipt.Failed >= change.Event.Revision:
		return opsv1.Learned{State: opsv1.Failed, Problem: receipt.Problem}
	case s.Since.Wall > change.Event.At.Wall:
		return opsv1.Learned{State: opsv1.Later}
	default:
		return opsv1.Learned{State: opsv1.Waiting}
	}
}
