package rollcall

import (
	"context"
	"iter"
)

// ServiceQuery says which services to list. Empty fields stand for the defaults of the
// client.
type ServiceQuery struct {
	Namespace, Group string
	// PageSize is how many are asked for at once, by default 200.
	PageSize int
}

// Services yields the services of a group, asking for page after page. It ends with the
// first error.
func (c *Client) Services(ctx context.Context, q ServiceQuery) iter.Seq2[Service, error] {
	return func(yield func(Service, error) bool) { yield(Service{}, ErrUnsupported) }
}

// Pattern selects services by name; * in Group and Name stands for any text. An empty
// Namespace or Group stands for the default of the client, an empty Name for *.
type Pattern struct{ Namespace, Group, Name string }

// ServiceWatch is the live list of the services that match a pattern.
type ServiceWatch struct{}

// ServicesUpdate is a change of that list. Added and Removed are relative to the update
// that the same reader got before.
type ServicesUpdate struct {
	Services, Added, Removed []Service
}

// WatchServices watches which services match a pattern. Where servers cannot push this,
// the client asks again as often as [WithResync] says, and Group must be a plain name.
func (c *Client) WatchServices(ctx context.Context, p Pattern) (*ServiceWatch, error) {
	return nil, ErrUnsupported
}

// Services returns the present list, sorted. It takes no lock.
func (w *ServiceWatch) Services() []Service { return nil }

// Updates returns the channel of changes; it behaves as that of [Watch.Updates].
func (w *ServiceWatch) Updates() <-chan ServicesUpdate { return nil }

// Close ends the watch. Closing again does nothing.
func (w *ServiceWatch) Close() error { return nil }
