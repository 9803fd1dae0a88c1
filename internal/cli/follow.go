package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// followInterval is how often a history is asked for what is new.
const followInterval = time.Second

// follow shows the latest entries and then what happens, until ctx ends. A server
// that is away for a while is followed on when it is back.
func (c *client) follow(ctx context.Context, f *historyFlags) error {
	feeds := f.feeds(c)
	for _, feed := range feeds {
		if err := feed.start(ctx); err != nil {
			return err
		}
	}
	entries, err := latest(ctx, feeds, f.limit)
	if err != nil {
		return err
	}
	c.servers = c.servers[:1] // the history of another one is another
	namespaces := f.service == "" && c.namespace == ""
	table := &layout{width: c.width, parts: true}
	if err := c.showMore(table, entries, namespaces, true); err != nil {
		return err
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		entries, err := fresh(ctx, feeds)
		if err != nil && ctx.Err() == nil && !failing {
			fmt.Fprintf(c.notes, "%s cannot follow for now, going on: %v\n", now(), err)
		}
		if err == nil && failing {
			fmt.Fprintf(c.notes, "%s following %s again\n", now(), c.server())
		}
		failing = err != nil
		if err := c.showMore(table, entries, namespaces, false); err != nil {
			return err
		}
	}
}

// fresh returns what came since the last time, the oldest first.
func fresh(ctx context.Context, feeds []*feed) ([]entry, error) {
	var all []entry
	for _, f := range feeds {
		entries, err := f.fresh(ctx)
		if err != nil {
			inTime(all)
			return all, err
		}
		all = append(all, entries...)
	}
	inTime(all)
	return all, nil
}

// showMore shows entries that follow others: one JSON object a line, or rows of a table
// that comes in parts.
func (c *client) showMore(table *layout, entries []entry, namespaces, heading bool) error {
	if c.json {
		enc := json.NewEncoder(c.out)
		enc.SetEscapeHTML(false)
		for _, e := range entries {
			var v any = e.event
			if e.push != nil {
				v = e.push
			}
			if err := enc.Encode(v); err != nil {
				return err
			}
		}
		return nil
	}
	return table.print(c.out, func(w io.Writer) {
		if heading {
			entryHeading(w, namespaces)
		}
		for i := range entries {
			entries[i].row(w, namespaces)
		}
	})
}
