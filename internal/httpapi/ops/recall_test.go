package ops

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// slowHistory finds its one record, number 5 of 100, when it is asked for what is
// before number 10, and gives up ten numbers earlier each time until then.
type slowHistory struct{ asked []uint64 }

func (h *slowHistory) Query(_ context.Context, f ledger.Filter) (ledger.Page, error) {
	h.asked = append(h.asked, f.Before)
	switch {
	case f.Before == 0:
		return ledger.Page{Truncated: true, Cursor: 100}, nil
	case f.Before > 10:
		return ledger.Page{Truncated: true, Cursor: f.Before - 10}, nil
	default:
		return ledger.Page{Records: []ledger.Record{{Seq: 5}}}, nil
	}
}

// An empty page is not the end, and there is an end to the patience.
func TestNewestGoesOn(t *testing.T) {
	h := &slowHistory{}
	a := &API{cfg: Config{History: h}}
	records, partial, err := a.newest(t.Context(), ledger.Filter{}, 3)
	if err != nil || partial || len(records) != 1 || records[0].Seq != 5 {
		t.Errorf("got %v, partial %v, %v; want record 5", records, partial, err)
	}
	if want := []uint64{0, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10}; !slices.Equal(h.asked, want) {
		t.Errorf("asked %v, want %v", h.asked, want)
	}

	endless := endlessHistory{}
	a = &API{cfg: Config{History: &endless}}
	if _, partial, err := a.newest(t.Context(), ledger.Filter{}, 3); err != nil || !partial || endless.pages != maxPages {
		t.Errorf("partial %v, %v after %d pages; want true after %d", partial, err, endless.pages, maxPages)
	}
}

// endlessHistory finds nothing and never ends.
type endlessHistory struct{ pages int }

func (h *endlessHistory) Query(_ context.Context, f ledger.Filter) (ledger.Page, error) {
	h.pages++
	cursor := f.Before - 1
	if f.OldestFirst {
		cursor = f.After + 1
	}
	return ledger.Page{Truncated: true, Cursor: cursor}, nil
}

func TestToldGivesUp(t *testing.T) {
	endless := &endlessHistory{}
	a := &API{cfg: Config{Pushes: endless}}
	change := &ledger.Record{}
	told, err := a.told(t.Context(), registry.ServiceKey{}, change)
	if err != nil || len(told) != 0 || endless.pages != maxPages {
		t.Errorf("got %v, %v after %d pages; want nothing after %d", told, err, endless.pages, maxPages)
	}
}

// failing cannot be asked.
type failing struct{ err error }

func (f failing) Query(context.Context, ledger.Filter) (ledger.Page, error) {
	return ledger.Page{}, f.err
}

func TestErrorsOfTheHistory(t *testing.T) {
	broken := failing{errors.New("broken")}
	a := &API{cfg: Config{History: broken, Pushes: broken}}
	if _, _, err := a.newest(t.Context(), ledger.Filter{}, 1); !errors.Is(err, broken.err) {
		t.Errorf("got %v", err)
	}
	if _, err := a.told(t.Context(), registry.ServiceKey{}, &ledger.Record{}); !errors.Is(err, broken.err) {
		t.Errorf("got %v", err)
	}
}

func TestLearned(t *testing.T) {
	change := &ledger.Record{Event: registry.Event{Revision: 100, At: registry.Instant{Wall: 1000}}}
	acked := opsv1.Learned{State: opsv1.Acknowledged, Time: 1003, Took: 3}
	failed := opsv1.Learned{State: opsv1.Failed, Time: 21000, Problem: "lost"}
	since := func(wall int64) *registry.Subscriber {
		return &registry.Subscriber{Since: registry.Instant{Wall: wall}}
	}
	for _, tt := range []struct {
		name    string
		sub     *registry.Subscriber
		receipt registry.Receipt
		told    opsv1.Learned
		change  *ledger.Record
		want    opsv1.Learned
	}{
		{"no change", since(1), registry.Receipt{}, opsv1.Learned{}, nil, opsv1.Learned{State: opsv1.Unknown}},
		{"refused", &registry.Subscriber{Refused: "no"}, registry.Receipt{}, opsv1.Learned{}, change, opsv1.Learned{State: opsv1.NeverPushed, Problem: "no"}},
		{"in the history", since(1), registry.Receipt{Revision: 200, At: 9000}, acked, change, acked},
		{"in the receipt", since(1), registry.Receipt{Revision: 100, At: 1004}, opsv1.Learned{}, change, opsv1.Learned{State: opsv1.Acknowledged, Time: 1004}},
		{"failed, and then learned of more", since(1), registry.Receipt{Revision: 200, At: 9000}, failed, change, opsv1.Learned{State: opsv1.Acknowledged, Time: 9000}},
		{"failed", since(1), registry.Receipt{Revision: 99}, failed, change, failed},
		{"failed by the receipt", since(1), registry.Receipt{Failed: 100, Problem: "lost"}, opsv1.Learned{}, change, opsv1.Learned{State: opsv1.Failed, Problem: "lost"}},
		{"not yet", since(1), registry.Receipt{Revision: 99, Failed: 98}, opsv1.Learned{}, change, opsv1.Learned{State: opsv1.Waiting}},
		{"later", since(1001), registry.Receipt{}, opsv1.Learned{}, change, opsv1.Learned{State: opsv1.Later}},
	} {
		if got := learned(tt.sub, tt.receipt, tt.told, tt.change); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// The first acknowledgement of the change or of a later state counts.
func TestNote(t *testing.T) {
	sub := &registry.Subscriber{Protocol: registry.ProtocolUDP}
	record := func(kind registry.EventKind, revision, wall int64) *registry.Event {
		return &registry.Event{Kind: kind, Revision: revision, At: registry.Instant{Wall: wall}, Subscriber: sub, Took: time.Duration(wall) * time.Millisecond}
	}
	change := &ledger.Record{Event: registry.Event{Revision: 100}}
	told := map[opsv1.Subscription]opsv1.Learned{}
	for _, step := range []struct {
		event *registry.Event
		want  opsv1.Learned
	}{
		{&registry.Event{Kind: ledger.Lost}, opsv1.Learned{}},
		{record(registry.PushAcknowledged, 99, 1), opsv1.Learned{}},
		{record(registry.PushFailed, 100, 2), opsv1.Learned{State: opsv1.Failed, Time: 2}},
		{record(registry.PushAcknowledged, 101, 3), opsv1.Learned{State: opsv1.Acknowledged, Time: 3, Took: 3}},
		{record(registry.PushAcknowledged, 102, 4), opsv1.Learned{State: opsv1.Acknowledged, Time: 3, Took: 3}},
		{record(registry.PushFailed, 103, 5), opsv1.Learned{State: opsv1.Acknowledged, Time: 3, Took: 3}},
	} {
		note(told, step.event, change)
		if got := told[wireSubscription(sub.Protocol, sub.SubscriberKey)]; got != step.want {
			t.Errorf("after %s of %d: got %+v, want %+v", step.event.Kind, step.event.Revision, got, step.want)
		}
	}
}
