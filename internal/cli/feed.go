package cli

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// entry is one entry of a history: an event or a push.
type entry struct {
	seq   uint64
	time  int64
	event *opsv1.Event
	push  *opsv1.Push
}

// page is one page of a history. next is the cursor of the one that follows, 0 if
// there is none; a page may be empty although one follows.
type page struct {
	entries []entry
	next    uint64
}

// feed is one of the histories of a server.
type feed struct {
	read   func(context.Context, url.Values) (page, error)
	query  url.Values
	cursor uint64 // of the newest entry that was read
}

func (c *client) eventPage(ctx context.Context, q url.Values) (page, error) {
	var answer opsv1.History
	if err := c.get(ctx, "/history", q, &answer); err != nil {
		return page{}, err
	}
	p := page{next: answer.Next}
	for i := range answer.Events {
		e := &answer.Events[i]
		p.entries = append(p.entries, entry{seq: e.Seq, time: e.Time, event: e})
	}
	return p, nil
}

func (c *client) pushPage(ctx context.Context, q url.Values) (page, error) {
	var answer opsv1.Pushes
	if err := c.get(ctx, "/pushes", q, &answer); err != nil {
		return page{}, err
	}
	p := page{next: answer.Next}
	for i := range answer.Pushes {
		e := &answer.Pushes[i]
		p.entries = append(p.entries, entry{seq: e.Seq, time: e.Time, push: e})
	}
	return p, nil
}

// with returns a copy of the feed's query with an order, a cursor and a limit.
func (f *feed) with(order string, cursor uint64, limit int) url.Values {
	q := maps.Clone(f.query)
	q.Set("order", order)
	q.Set("cursor", strconv.FormatUint(cursor, 10))
	q.Set("limit", strconv.Itoa(limit))
	return q
}

// latest returns the newest entries of the feed, newest first.
func (f *feed) latest(ctx context.Context, limit int) ([]entry, error) {
	var all []entry
	for cursor := uint64(0); ; {
		p, err := f.read(ctx, f.with("newest", cursor, min(limit-len(all), pageSize)))
		if err != nil {
			return nil, err
		}
		all = append(all, p.entries...)
		if cursor = p.next; cursor == 0 || len(all) >= limit {
			return all, nil
		}
	}
}

// fresh returns what came since the cursor, oldest first, and moves the cursor
// behind it.
func (f *feed) fresh(ctx context.Context) ([]entry, error) {
	var all []entry
	cursor := f.cursor
	for {
		p, err := f.read(ctx, f.with("oldest", cursor, pageSize))
		if err != nil {
			return nil, err
		}
		all = append(all, p.entries...)
		if p.next == 0 {
			f.seen(all)
			return all, nil
		}
		cursor = p.next
	}
}

// seen moves the cursor behind entries.
func (f *feed) seen(entries []entry) {
	for _, e := range entries {
		f.cursor = max(f.cursor, e.seq)
	}
}

// start moves the cursor to the end of the history, whatever the query chooses.
func (f *feed) start(ctx context.Context) error {
	whole := feed{read: f.read, query: url.Values{}}
	newest, err := whole.latest(ctx, 1)
	if err != nil {
		return err
	}
	f.seen(newest)
	return nil
}

// latest returns the newest entries of all feeds, the oldest of them first.
func latest(ctx context.Context, feeds []*feed, limit int) ([]entry, error) {
	var all []entry
	for _, f := range feeds {
		entries, err := f.latest(ctx, limit)
		if err != nil {
			return nil, err
		}
		f.seen(entries)
		slices.Reverse(entries)
		all = append(all, entries...)
	}
	inTime(all)
	return all[max(len(all)-limit, 0):], nil
}

// inTime orders entries of several feeds.
func inTime(entries []entry) {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.time, b.time) })
}

// entryHeading writes the names of the columns of [entry.row].
func entryHeading(w io.Writer, namespaces bool) {
	row(w, append([]string{"TIME", "EVENT"}, append(column(namespaces, "NAMESPACE"), "SERVICE", "ABOUT", "WHY")...)...)
}

// column is one cell, or none if the column is not shown.
func column(shown bool, cell string) []string {
	if !shown {
		return nil
	}
	return []string{cell}
}

// row writes one line of a table.
func (e *entry) row(w io.Writer, namespaces bool) {
	kind, service, about, why := e.words()
	name := ""
	if service.Service != "" {
		name = nameOf(service)
	}
	row(w, append([]string{stamp(e.time), kind}, append(column(namespaces, service.Namespace), name, about, why)...)...)
}

// aboutColumns bounds what a table shows of what an event is about, which for one of a
// subscriber ends with what that calls itself.
const aboutColumns = 64

// words says what happened, where, to whom, and why.
func (e *entry) words() (kind string, service opsv1.Service, about, why string) {
	if p := e.push; p != nil {
		about = p.Subscriber.Protocol + " " + p.Subscriber.Address
		switch {
		case p.Problem != "":
			why = p.Problem
		case p.Took > 0:
			why = took(p.Took) + " after the change"
		}
		return p.Kind, p.Service, about, why
	}
	v := e.event
	if v.Instance != nil {
		about = hostPort(v.Instance.IP, v.Instance.Port)
	}
	why = v.Cause.Text
	if v.Client != "" {
		why += ", client " + v.Client
	}
	switch {
	case v.Lost > 0:
		about = strconv.FormatUint(v.Lost, 10) + " entries"
	case v.Instance == nil && v.Detail != "":
		about = cut(v.Detail, aboutColumns)
	case v.Detail != "":
		why += ", " + v.Detail
	}
	return v.Kind, v.Service, about, why
}
