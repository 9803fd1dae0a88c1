package udppush

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Outcomes of a push to one subscriber, for an [Observer].
const (
	Acked      = "acked"
	Failed     = "failed"     // sent twice and not acknowledged
	Unsent     = "unsent"     // the system would not send it
	TooLarge   = "too_large"  // for the client or for a datagram; the client polls
	Superseded = "superseded" // a newer one took its place
	Overflow   = "overflow"   // given up for newer ones: too many were unacknowledged
	Gone       = "gone"       // the subscription ended before it was sent again
	Forgotten  = "forgotten"  // by [Sender.Reset]
)

// Reasons why a datagram was ignored, for an [Observer].
const (
	NoAck      = "no_ack"      // it is no acknowledgement at all
	UnknownAck = "unknown_ack" // late, repeated, of another number or from elsewhere
)

// Store is what a [Sender] needs of the registry.
type Store interface {
	Subscriber(registry.ServiceKey, registry.SubscriberKey) *registry.Subscriber
	ExpireSubscribers(at registry.Instant, ttl time.Duration)
	Switches() *registry.Switches
	// Floor is at least the last revision of every service that is gone.
	Floor() int64
}

// Clock reads the time by which commands are stamped.
type Clock interface {
	Now() registry.Instant
}

// Observer is told what becomes of packets, for metrics. Its methods are called
// by several goroutines and must not block. Durations are since the change that
// the packet tells of, 0 when it tells of none.
type Observer interface {
	// Sent: a packet left for the first time.
	Sent(sinceChange time.Duration)
	// Settled: this is the end of a push to one subscriber. A packet that was
	// replaced before it was sent is Superseded without having been Sent.
	Settled(outcome string, sinceChange time.Duration)
	// Ignored: a datagram came that acknowledges nothing.
	Ignored(reason string)
}

// Payload returns the JSON text that tells a subscriber of a service: the answer
// to its look-up, with the clusters that it asked for and in the form that it
// reads. view is nil when there is no such service. It is called once per push for
// all subscribers with the same agent, clusters and form, and the same address if a
// label selector looks at it. It returns nil when there is nothing to send.
// The bytes must not change afterwards.
type Payload func(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte

// Parts is what a [Sender] works with. All but History are needed.
type Parts struct {
	Store   Store
	Clock   Clock
	Payload Payload
	// Later has the present state pushed to one subscriber after a delay:
	// push.Pusher.Schedule.
	Later    func(sub *registry.Subscriber, delay time.Duration, changed registry.Instant)
	Observer Observer
	// History, if set, gets how the push of each revision to each subscriber ended:
	// [registry.PushAcknowledged] or [registry.PushFailed], at most once each.
	History registry.Sink
}

// datagrams is the part of a UDP socket that is used. A closed one returns
// net.ErrClosed.
type datagrams interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	Close() error
}

// Sender pushes to UDP subscribers; it is the push.Sender of that protocol.
// Create it with [New], bind it with [Sender.Listen], run it with [Sender.Run].
type Sender struct {
	cfg       Config
	parts     Parts
	log       *slog.Logger
	admission Admission
	hosts     hosts

	conn datagrams      // set by Listen
	addr netip.AddrPort // of conn

	numbers    sequence
	compressor compressor
	outbox     *outbox
	acks       *acks

	total, succeeded atomic.Int64
	garbage          atomic.Int64 // datagrams that were no acknowledgements
	complaints       complaints
}

// New returns a sender that is not bound yet.
func New(cfg Config, parts Parts, logger *slog.Logger) *Sender {
	s := &Sender{
		cfg: cfg, parts: parts, log: logger.With("component", "udppush"),
		outbox: newOutbox(), acks: newAcks(),
	}
	s.admission.hosts = &s.hosts
	s.admission.SetAllowed(cfg.Allow)
	return s
}

// Admission returns the rule of who is pushed to.
func (s *Sender) Admission() *Admission { return &s.admission }

const (
	// sendBuffer holds the packets of a few bursts, receiveBuffer some ten thousand
	// acknowledgements beside whatever strangers send. The system may give less.
	sendBuffer    = 1 << 20
	receiveBuffer = 4 << 20
)

// Listen binds the socket.
func (s *Sender) Listen() error {
	if err := s.hosts.refresh(); err != nil {
		s.log.Warn("only loopback addresses are known as this machine's", "err", err)
	}
	local := &net.UDPAddr{Port: s.cfg.Port}
	if s.cfg.Host != "" {
		host, err := netip.ParseAddr(s.cfg.Host)
		if err != nil {
			return fmt.Errorf("udp push: %w", err)
		}
		local.IP, local.Zone = host.AsSlice(), host.Zone()
	}
	conn, err := net.ListenUDP("udp", local)
	if err != nil {
		return fmt.Errorf("udp push: %w", err)
	}
	for _, err := range []error{conn.SetWriteBuffer(sendBuffer), conn.SetReadBuffer(receiveBuffer)} {
		if err != nil {
			s.log.Debug("socket buffer not enlarged", "err", err)
		}
	}
	s.conn = conn
	s.addr = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return nil
}

// Addr returns the address that packets come from; the zero value before Listen.
func (s *Sender) Addr() netip.AddrPort { return s.addr }

// Queued returns how many packets wait to be sent.
func (s *Sender) Queued() int { return s.outbox.len() }

// Unacked returns how many packets wait for an acknowledgement.
func (s *Sender) Unacked() int { return s.acks.len() }

// answerGrace is for how long after a look-up a subscriber is not pushed to: the
// answer may still be on its way, and a client that reads an older answer after a
// newer packet keeps the older state until it polls again.
const answerGrace = 5 * time.Millisecond

// Push implements push.Sender. It encodes and queues; it never waits for the
// network.
func (s *Sender) Push(view *registry.View, key registry.ServiceKey, subs []*registry.Subscriber, changed registry.Instant) (backlog time.Duration) {
	now := s.parts.Clock.Now()
	e := edition{view: view, key: key, sender: s, wall: now.Wall, forms: map[form]*packet{}}
	revision := s.parts.Store.Floor()
	if view != nil {
		revision = view.Revision
	}
	list := make([]delivery, 0, len(subs))
	for _, sub := range subs {
		if since := now.Lease - sub.LastSeen(); since < answerGrace {
			s.parts.Later(sub, answerGrace-since, changed)
			continue
		}
		p := e.packet(sub)
		if p == nil {
			continue
		}
		d := delivery{sub: sub, packet: p, revision: revision, changed: changed}
		if limit := sizeLimit(sub.Agent); len(p.bytes) > limit {
			s.tooLarge(d, limit)
			continue
		}
		list = append(list, d)
	}
	replaced, queued := s.outbox.add(key, list)
	for range replaced {
		s.parts.Observer.Settled(Superseded, s.since(changed))
	}
	return time.Duration(queued) * burstPause / burstPackets
}

// since is the time since a change, 0 when there is none.
func (s *Sender) since(changed registry.Instant) time.Duration {
	if changed == (registry.Instant{}) {
		return 0
	}
	return s.parts.Clock.Now().Lease - changed.Lease
}

// settled is told how a push to a subscriber ended.
func (s *Sender) settled(outcome string, d delivery) {
	since := s.since(d.changed)
	s.parts.Observer.Settled(outcome, since)
	s.record(outcome, d, since)
}

func (s *Sender) tooLarge(d delivery, limit int) {
	s.total.Add(1)
	s.settled(TooLarge, d)
	if key := d.sub.Service; s.complaints.first(key, time.Now()) {
		s.log.Warn("a service is too large to be pushed over UDP; its clients see changes when they poll",
			"namespace", key.Namespace, "group", key.Group, "service", key.Name,
			"agent", d.sub.Agent, "bytes", len(d.packet.bytes), "limit", limit)
	}
}
