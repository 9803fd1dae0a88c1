package grpcmode

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// session is what a server holds for the client: one connection, and on servers
// without batches some more. It ends with its main connection.
type session struct {
	transport *Transport
	info      wire.Session
	server    servers.Server
	main      *conn
	resets    chan move // capacity 1: where the server asked to go; a second wish is lost
	asking    sync.WaitGroup

	mu            sync.Mutex
	closed        bool
	subscriptions map[fullName][]wire.Service // those of several namespaces share a name
	stale         map[wire.Service]struct{}   // to be asked for; see askAgain
	asks          bool                        // somebody does
	patterns      map[string][]wire.Pattern   // by their text on the wire
	published     map[wire.Service]*publication

	shrinks   atomic.Uint32 // a shrinking
	unbatched atomic.Bool   // the server knows no batches
	adding    chan struct{} // capacity 1: held by the one who adds to extras
	extras    []*conn       // guarded by mu; see spread.go
}

// fullName is a service as pushes name it: without its namespace.
type fullName struct{ group, name string }

func newSession(t *Transport, server servers.Server) *session {
	return &session{
		transport:     t,
		server:        server,
		info:          wire.Session{ID: "grpc-" + strconv.FormatUint(rand.Uint64(), 36), Server: server.GRPC(), Protocol: wire.GRPC},
		resets:        make(chan move, 1),
		subscriptions: make(map[fullName][]wire.Service),
		stale:         make(map[wire.Service]struct{}),
		patterns:      make(map[string][]wire.Pattern),
		published:     make(map[wire.Service]*publication),
		adding:        make(chan struct{}, 1),
	}
}

// close ends all connections, at once, and waits for them.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	extras := s.extras
	s.mu.Unlock()
	var all sync.WaitGroup
	all.Go(s.main.close)
	for _, c := range extras {
		all.Go(c.close)
	}
	all.Wait()
	s.asking.Wait()
}

// request takes a request of the server.
func (s *session) request(p *grpcv2.Payload) (ack, id string) {
	if p.Type == grpcv2.NotifySubscriber {
		return s.push(p)
	}
	q, err := grpcv2.ReadServerRequest(p.Body)
	if err != nil {
		s.transport.events.Dropped("grpc_malformed")
		return "", ""
	}
	switch p.Type {
	case grpcv2.ClientDetection:
		return grpcv2.ClientDetectionResponse, q.RequestID
	case grpcv2.ConnectReset:
		select {
		case s.resets <- move{from: s.server, host: q.Host, port: q.Port}:
		default: // it moves already
		}
		return grpcv2.ConnectResetResponse, q.RequestID
	case grpcv2.FuzzyWatchSync, grpcv2.FuzzyWatchChange:
		s.fuzzy(&q.Fuzzy)
		return grpcv2.FuzzyChangeResponse, q.RequestID
	default:
		s.transport.events.Dropped("grpc_unknown")
		return "", ""
	}
}

// push takes a list. It is acknowledged even if nobody wants it: the server would only
// send it again.
func (s *session) push(p *grpcv2.Payload) (ack, id string) {
	n, err := grpcv2.ReadNotify(p.Body)
	if err != nil {
		s.transport.events.Dropped("grpc_malformed")
		return "", ""
	}
	switch of := s.wanted(&n); {
	case n.Info == nil:
		s.transport.events.Dropped("grpc_empty")
	case len(of) == 0:
		s.transport.events.Dropped("grpc_unwanted")
	case len(of) == 1:
		s.pushed(wire.List{Service: of[0], Session: s.info.ID, Server: s.info.Server, Raw: n.Info})
	default:
		s.askAgain(of)
	}
	return grpcv2.NotifySubscriberResponse, n.RequestID
}

// wanted returns the subscriptions that a push may be about.
func (s *session) wanted(n *grpcv2.Notify) []wire.Service {
	name := fullName{n.Group, n.Name}
	if group, plain, ok := strings.Cut(n.Name, "@@"); ok { // as lists of HTTP have it
		name = fullName{group, plain}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.subscriptions[name]
	if n.Namespace == "" || len(of) < 2 {
		return of
	}
	for _, service := range of {
		if service.Namespace == n.Namespace {
			return []wire.Service{service}
		}
	}
	return of
}

// subscribe notes a subscription. The lists of subscriptions are never changed in
// place.
func (s *session) subscribe(service wire.Service, on bool) {
	name := fullName{service.Group, service.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []wire.Service
	for _, other := range s.subscriptions[name] {
		if other != service {
			list = append(list, other)
		}
	}
	if on {
		list = append(list, service)
	}
	if len(list) == 0 {
		delete(s.subscriptions, name)
		return
	}
	s.subscriptions[name] = list
}

func (s *session) pushed(l wire.List) {
	s.transport.deliver(s, func(events wire.Events) { events.Pushed(l) })
}

// askAgain asks for services about one of which a push was, without saying in which
// namespace. One goroutine does so while there is something to ask for; what comes
// meanwhile is merged.
func (s *session) askAgain(services []wire.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, service := range services {
		s.stale[service] = struct{}{}
	}
	if !s.asks && !s.closed {
		s.asks = true
		s.asking.Go(s.askStale)
	}
}

func (s *session) askStale() {
	for {
		service, ok := s.nextStale()
		if !ok {
			return
		}
		if list, err := s.query(context.Background(), service); err == nil { // ends with the connection
			s.pushed(list)
		}
	}
}

// nextStale takes one of the services to ask for.
func (s *session) nextStale() (wire.Service, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for service := range s.stale {
		delete(s.stale, service)
		if !s.closed {
			return service, true
		}
	}
	s.asks = false
	return wire.Service{}, false
}
