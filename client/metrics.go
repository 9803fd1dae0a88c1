package rollcall

import "time"

// Metrics is told what a client does. Its methods are called on paths where time
// counts: they must not block, and may be called concurrently.
type Metrics interface {
	// CallDone tells of an operation on a server: what it was (publish, watch,
	// unsubscribe, lookup or services), how long it took, and its error, which is as the
	// methods of the client return it.
	CallDone(op string, took time.Duration, err error)
	// Published tells of a new snapshot of a service, and how long the client took
	// from having received it.
	Published(s Service, instances int, took time.Duration)
	// Dropped tells of a message that was ignored. The reason is one of a few constant
	// words, such as push_stale, which is one that is older than what is known,
	// udp_malformed, or panic, which is a function of the user that did.
	Dropped(reason string)
	// Connected and Disconnected tell of the session with a server. The cause is nil
	// if another session takes its place.
	Connected(server string, p Protocol)
	Disconnected(cause error)
}

type noMetrics struct{}

func (noMetrics) CallDone(string, time.Duration, error) {}
func (noMetrics) Published(Service, int, time.Duration) {}
func (noMetrics) Dropped(string)                        {}
func (noMetrics) Connected(string, Protocol)            {}
func (noMetrics) Disconnected(error)                    {}
