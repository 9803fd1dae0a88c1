package target

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
)

// Seen is a list of instances as a subscriber was told.
type Seen struct {
	Hosts, Healthy, Enabled int
	// Revision is the greatest of the instances, see [fleet.Instance].
	Revision int64
	// Pushed: the server told it unasked; otherwise it is the answer to a look-up.
	Pushed bool
}

// Listener hears what a subscriber is told. Its methods are called by goroutines of
// the subscriber and must not block.
type Listener interface {
	// Told gets each list, as soon as it is there.
	Told(Seen)
	// Acked is called after the acknowledgement of a push has been sent.
	Acked(Seen)
}

// Subscriber is one client that subscribes to services. It is for one goroutine.
type Subscriber interface {
	// Subscribe subscribes to a service and tells the listener of the list in the
	// answer. Over HTTP it looks the service up by the session via, over gRPC it asks
	// on its own connection.
	Subscribe(s fleet.Service, via Session) error
	// Renew says that the subscriber of a service is still there: over HTTP it
	// subscribes again.
	Renew(s fleet.Service, via Session) error
	// Session is the subscriber's own connection over gRPC, by which it can register
	// as well; nil over HTTP.
	Session() Session
	// Ended is closed when the connection has ended; it is nil over HTTP.
	Ended() <-chan struct{}
	// Close ends the connection or closes the socket. It does not unsubscribe.
	Close()
}

// NewSubscriber makes a client that can subscribe: over gRPC with a connection of
// its own, over HTTP with a socket of its own. It ends with ctx.
func (t *Target) NewSubscriber(ctx context.Context, p Protocol, l Listener) (Subscriber, error) {
	var s Subscriber
	var err error
	if p == GRPC {
		s, err = t.newGRPCSubscriber(ctx, l)
	} else {
		s, err = newUDPSubscriber(ctx, l)
	}
	if err != nil {
		return nil, Advised(err)
	}
	return s, nil
}

// see sums an encoded list up. escape is how quotation marks are written in it.
func see(list []byte, escape string) Seen {
	count := func(name, value string) int { return members(list, name, value, escape) }
	return Seen{
		Hosts: count("ip", escape+`"`), Healthy: count("healthy", "true"), Enabled: count("enabled", "true"),
		Revision: fleet.Revision(list),
	}
}

// grpcSubscriber is told on its stream.
type grpcSubscriber struct {
	session *grpcSession
	ended   chan struct{}
	told    Listener
}

func (t *Target) newGRPCSubscriber(ctx context.Context, l Listener) (*grpcSubscriber, error) {
	g := &grpcSubscriber{ended: make(chan struct{}), told: l}
	var seen Seen // of the push at hand: one goroutine calls both
	session, err := t.dialGRPC(ctx, hearing{
		push: func(body []byte) {
			seen = see(body, "")
			seen.Pushed = true
			l.Told(seen)
		},
		acked: func() { l.Acked(seen) },
		ended: func(error) { close(g.ended) },
	})
	if err != nil {
		return nil, err
	}
	session.once = true
	g.session = session
	return g, nil
}

func (g *grpcSubscriber) Subscribe(s fleet.Service, _ Session) error {
	answer, err := g.session.subscribe(s)
	if err == nil {
		g.told.Told(see(answer, ""))
	}
	return err
}

func (g *grpcSubscriber) Renew(fleet.Service, Session) error { return g.session.Beat(fleet.Instance{}) }

func (g *grpcSubscriber) Session() Session { return g.session }

func (g *grpcSubscriber) Ended() <-chan struct{} { return g.ended }

func (g *grpcSubscriber) Close() { g.session.Close() }
