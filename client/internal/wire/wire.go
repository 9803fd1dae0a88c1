// Package wire is the seam between the engine of the SDK and the protocols.
//
// # Who owns what
//
// The engine (package rollcall, one folder up) owns the desired state: which
// instances are to be published and which services are watched. It calls a
// [Transport] until the server agrees, again after each loss of a session, and
// decides whether a list that came is newer than the one it has. It knows no
// message of any protocol.
//
// A Transport owns everything that touches the network of one protocol: finding a
// server that answers, staying attached to it, the messages, credentials in them,
// beats and polls where the protocol needs them. It keeps no desired state but
// what its server holds because of it, and never repeats an operation that
// failed: it returns the error and the engine tries again. It may repeat within a
// call only what certainly reached no server, or what a server refused because it
// was not ready or did not accept the credentials, and only until ctx ends.
//
// The folders beside this one:
//
//	grpcmode   the gRPC protocol of 2.x and 3.x
//	httpmode   HTTP of 0.9, 1.x and 3.x, with beats, polls and UDP pushes
//	servers    the list of servers: addresses, endpoint, function; order and back-off
//	auth       tokens and signatures, shared by both protocols
//	schedule   timers and bounded workers
//	disk       the cache on disk and the failover switch
//	faulttest  a proxy that breaks connections, for tests
//
// All types here are plain data. A Transport is safe for concurrent use.
package wire

import (
	"context"
	"maps"
)

// Service names a service. All fields are set.
type Service struct{ Namespace, Group, Name string }

// Instance is what is published. Its fields are valid, see the type of the same
// name in package rollcall.
type Instance struct {
	ID        string
	IP        string
	Port      uint16
	Weight    float64
	Healthy   bool
	Enabled   bool
	Ephemeral bool
	Cluster   string
	Metadata  map[string]string // never written to
}

// Key tells instances of one service apart.
type Key struct {
	IP      string
	Port    uint16
	Cluster string
}

// Key returns the key of an instance.
func (i *Instance) Key() Key { return Key{i.IP, i.Port, i.Cluster} }

// Alike reports whether two instances of one key and kind are the same in all else, so that
// a server which has one need not be told of the other.
func (i *Instance) Alike(o *Instance) bool {
	return i.ID == o.ID && i.Weight == o.Weight && i.Healthy == o.Healthy && i.Enabled == o.Enabled && maps.Equal(i.Metadata, o.Metadata)
}

// Protocol is how a session speaks.
type Protocol uint8

// The protocols.
const (
	NoProtocol Protocol = iota
	GRPC
	HTTP
	InMemory // of tests
)

// Session is the attachment to one server. What was published and subscribed
// through it is gone when it ends, or must be taken to be.
type Session struct {
	// ID is unique within the process.
	ID string
	// Server is host:port, for people.
	Server   string
	Protocol Protocol
	// Persistent says that the server takes persistent instances by this protocol.
	Persistent bool
	// Fuzzy says that the server watches patterns of service names.
	Fuzzy bool
	// Polls says that the transport itself asks again for each subscribed service,
	// so that the engine need not.
	Polls bool
}

// List is the state of a service as a server told it.
type List struct {
	Service Service
	// Session is the ID of the session that brought it: times of two sessions
	// cannot be compared.
	Session string
	// Server is the host:port that told it, for people.
	Server string
	// Asked says that it answers a request of this client, and is no push.
	Asked bool
	// Raw is the JSON object that Nacos calls ServiceInfo, with hosts and
	// lastRefTime. The receiver owns it; nobody may change it any more.
	Raw []byte
}

// Events is what a transport tells the engine. Its methods return soon, whatever
// the user's code does, and may be called from any goroutine until Run returned.
type Events interface {
	// Connected says that a session has begun; a former one of the same transport
	// has ended. Operations may be called from now on. With the ID of the present
	// session it says that another server carries it, or that it is there again.
	Connected(Session)
	// Disconnected says why there is no session any more, or none yet. It may be
	// called repeatedly, with each cause.
	Disconnected(cause error)
	// Pushed hands over what a server sent unasked, or in answer to a poll of the
	// transport. It is called in the order in which the lists came.
	Pushed(List)
	// ServicesChanged hands over what a pattern matches; see [FuzzyTransport].
	ServicesChanged(ServicesChange)
	// Dropped counts a message that was not understood or not wanted. The reason
	// is one of a few constant words.
	Dropped(reason string)
}

// Transport speaks one protocol.
//
// Operations fail at once with an error of kind NotConnected while there is no
// session; none waits for one. They return when ctx ends. Their errors are
// [*Error], or errors of ctx.
type Transport interface {
	// Run attaches to a server, stays attached to one until ctx ends, and returns
	// when all that it started has ended. It is called at most once.
	Run(ctx context.Context, events Events) error

	// Publish makes the server hold exactly these ephemeral instances of the
	// service for this client; none means that all are withdrawn. It takes effect
	// wholly or, on an error, perhaps in part: the caller repeats it with what is
	// wanted then. Calls for one service are never concurrent.
	Publish(ctx context.Context, s Service, instances []Instance) error

	// Subscribe asks for the state of a service and for pushes of it until the
	// session ends or Unsubscribe. Calls for one service are never concurrent.
	Subscribe(ctx context.Context, s Service) (List, error)
	// Unsubscribe takes that back.
	Unsubscribe(ctx context.Context, s Service) error
	// Query asks for the state of a service once.
	Query(ctx context.Context, s Service) (List, error)

	// RegisterPersistent and DeregisterPersistent change an instance that stays
	// without this client.
	RegisterPersistent(ctx context.Context, s Service, i Instance) error
	DeregisterPersistent(ctx context.Context, s Service, i Instance) error

	// Services returns one page of the names in a group, without the group, and
	// how many there are in all. Pages count from 1.
	Services(ctx context.Context, namespace, group string, page, size int) (names []string, total int, err error)
}

// Pattern selects services by name. Group and Name may hold * for any text.
type Pattern struct{ Namespace, Group, Name string }

// ServicesChange is a part of what a pattern matches.
type ServicesChange struct {
	Pattern Pattern
	Session string
	Added   []Service
	Removed []Service
	// Complete says that with this all services are known that matched when the
	// watch began.
	Complete bool
}

// FuzzyTransport is a transport that can watch patterns, if its session says so.
type FuzzyTransport interface {
	Transport
	// WatchServices asks for [ServicesChange]s until the session ends or
	// UnwatchServices; known are the services that the caller has already.
	WatchServices(ctx context.Context, p Pattern, known []Service) error
	UnwatchServices(ctx context.Context, p Pattern) error
}
