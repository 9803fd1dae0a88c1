package rollcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// ServiceQuery says which services to list. Empty fields stand for the defaults of the
// client.
type ServiceQuery struct {
	Namespace, Group string
	// PageSize is how many are asked for at once, 1 to 100,000; 0 stands for 200.
	PageSize int
}

// The bounds of lists of services.
const (
	defaultPage = 200
	mostPage    = 100_000
	// maxPages bounds how many pages are asked for, in case a server never ends.
	maxPages = 10000
)

var errEndless = fmt.Errorf("%d pages of services, and no end", maxPages)

// Services yields the services of a group, asking for page after page. It ends with the
// first error.
func (c *Client) Services(ctx context.Context, q ServiceQuery) iter.Seq2[Service, error] {
	return func(yield func(Service, error) bool) {
		ns, group, size := cmp.Or(q.Namespace, c.cfg.namespace), cmp.Or(q.Group, c.cfg.group), cmp.Or(q.PageSize, defaultPage)
		if err := q.check(); err != nil {
			yield(Service{}, opError("services", Service{Namespace: ns, Group: group}, err))
			return
		}
		for s, err := range c.names(ctx, ns, group, size) {
			if err != nil {
				err = opError("services", Service{Namespace: ns, Group: group}, err)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// names yields the services of a group, and the errors of transports as they are.
func (c *Client) names(ctx context.Context, ns, group string, size int) iter.Seq2[Service, error] {
	return func(yield func(Service, error) bool) {
		seen := 0
		for page := 1; ; page++ {
			names, total, err := c.page(ctx, ns, group, page, size)
			if err == nil && page > maxPages {
				err = errEndless
			}
			if err != nil {
				yield(Service{}, err)
				return
			}
			for _, name := range names {
				if !yield(Service{ns, group, name}, nil) {
					return
				}
			}
			if seen += len(names); len(names) == 0 || seen >= total {
				return
			}
		}
	}
}

// check returns all that is wrong with a query.
func (q ServiceQuery) check() error {
	var fault error
	if q.PageSize < 0 || q.PageSize > mostPage {
		fault = invalid("ServiceQuery.PageSize %d: give 1 to %d, or 0 for %d", q.PageSize, mostPage, defaultPage)
	}
	return errors.Join(fault, checkNames("ServiceQuery", q.Namespace, q.Group, ""))
}

// page asks for a page of names, once there is a connection.
func (c *Client) page(ctx context.Context, ns, group string, page, size int) ([]string, int, error) {
	l, err := c.linked(ctx)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrClosed) {
			err = because(ctx, *c.lastError.Load())
		}
		return nil, 0, err
	}
	started := time.Now()
	names, total, err := l.transport.Services(ctx, ns, group, page, size)
	c.done("services", wire.Service{Namespace: ns, Group: group}, started, err)
	return names, total, err
}
