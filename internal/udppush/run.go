package udppush

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// burstPackets and burstBytes are what is sent at once; then comes a pause.
	// That is up to 64,000 packets a second, and half of the usual buffer of a
	// Linux socket, so that neither our socket nor that of a machine with many
	// clients, nor ours with their acknowledgements, runs over.
	burstPackets = 64
	burstBytes   = 100 << 10
	burstPause   = time.Millisecond
	// drainLimit bounds the sending of what is queued when the server stops.
	drainLimit = time.Second
)

// errNotBound is returned by Run before Listen.
var errNotBound = fmt.Errorf("udp push: %w", net.ErrClosed)

// Run sends packets and hears acknowledgements until ctx ends, sends what is
// queued then for at most a second, closes the socket and returns nil. It also
// ends the subscriptions of those who neither look up nor acknowledge any more:
// after twice the poll period that they are told, a little kinder than the
// original's once. Acknowledgements count because clients begin their poll period
// anew with each packet, and one that is told of changes all the time may not poll
// at all. It may run once, after Listen.
func (s *Sender) Run(ctx context.Context) error {
	if s.conn == nil {
		return errNotBound
	}
	var hearing, working sync.WaitGroup
	hearing.Go(s.hear)
	working.Go(func() { s.transmit(ctx) })
	working.Go(func() { s.repeat(ctx) })
	working.Go(func() { s.keep(ctx) })
	working.Wait()
	err := s.conn.Close()
	hearing.Wait()
	if err != nil {
		return fmt.Errorf("udp push: %w", err)
	}
	return nil
}

// transmit sends what is queued.
func (s *Sender) transmit(ctx context.Context) {
	batch := make([]delivery, 0, burstPackets)
	for ctx.Err() == nil {
		if s.burst(batch) {
			pause(ctx, burstPause)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.outbox.ready:
		}
	}
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer stop()
	for s.burst(batch) && pause(drain, burstPause) {
	}
}

// burst sends what may be sent at once, and reports whether that was a full burst,
// so that a pause must follow. batch is memory to work with.
func (s *Sender) burst(batch []delivery) (full bool) {
	batch, full = s.outbox.take(batch[:0], burstPackets, burstBytes)
	for _, d := range batch {
		s.send(d)
	}
	clear(batch)
	return full
}

// pause waits for d or the end of ctx, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends one packet.
func (s *Sender) send(d delivery) {
	if d.again {
		if !s.acks.waits(d) {
			return
		}
	} else if !s.expectAck(d) {
		return
	}
	if err := s.write(d); err != nil {
		if s.acks.drop(d) {
			s.settled(Unsent, d)
		}
		s.log.Warn("cannot send a push", "addr", d.sub.Addr, "bytes", len(d.packet.bytes), "err", err)
		return
	}
	if !d.again {
		s.parts.Observer.Sent(s.since(d.changed))
	}
}

// expectAck remembers a packet that is about to be sent for the first time. It
// reports whether it is to be sent.
func (s *Sender) expectAck(d delivery) bool {
	older, lost, ok := s.acks.add(d, s.hosts.alias(d.sub.Addr), time.Now())
	if !ok {
		return false
	}
	s.total.Add(1)
	if older != nil {
		s.settled(Superseded, older.delivery)
	}
	for _, u := range lost {
		s.settled(Overflow, u.delivery)
	}
	return true
}

// The system is asked again so often, and so far apart, when it has no memory for
// a packet just now.
const (
	noBufferTries = 5
	noBufferPause = time.Millisecond
)

func (s *Sender) write(d delivery) (err error) {
	for range noBufferTries {
		_, err = s.conn.WriteToUDPAddrPort(d.packet.bytes, d.sub.Addr)
		if !errors.Is(err, syscall.ENOBUFS) {
			return err
		}
		time.Sleep(noBufferPause)
	}
	return err
}

// repeat sends again what was not acknowledged, and gives up what was sent twice.
func (s *Sender) repeat(ctx context.Context) {
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	for {
		again, failed, next := s.acks.expire(time.Now())
		for _, u := range failed {
			s.settled(Failed, u.delivery)
		}
		for _, u := range again {
			s.sendAgain(u)
		}
		wait := ackTimeout
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.acks.first:
		}
	}
}

// sendAgain queues a packet for the second time, unless its subscriber has left.
func (s *Sender) sendAgain(u *unacked) {
	sub := u.sub
	if s.parts.Store.Subscriber(sub.Service, sub.SubscriberKey) != sub {
		if s.acks.drop(u.delivery) {
			s.settled(Gone, u.delivery)
		}
		return
	}
	s.outbox.add(sub.Service, []delivery{u.delivery})
}

// ackBuffer is far more than any acknowledgement has. What is longer is cut, and
// no acknowledgement then.
const ackBuffer = 2 << 10

// Errors of reading pass: Windows reports here that an earlier packet could not
// be delivered, or that a datagram was longer than the buffer. After so many in a
// row each is followed by a pause, in case they do not.
const (
	readErrors     = 100
	readErrorPause = 10 * time.Millisecond
)

// hear reads datagrams until the socket is closed.
func (s *Sender) hear() {
	buf := make([]byte, ackBuffer)
	for failed := 0; ; {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			failed = 0
			s.heard(buf[:n], from)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if failed++; failed > readErrors {
				time.Sleep(readErrorPause)
			}
			s.heard(nil, from)
		}
	}
}

// heard handles one datagram.
func (s *Sender) heard(datagram []byte, from netip.AddrPort) {
	number, ok := decodeAck(datagram)
	if !ok {
		s.garbage.Add(1)
		s.parts.Observer.Ignored(NoAck)
		return
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	u := s.acks.take(from, s.hosts.alias(from), number)
	if u == nil {
		s.parts.Observer.Ignored(UnknownAck)
		return
	}
	s.succeeded.Add(1)
	u.sub.Renew(s.parts.Clock.Now())
	s.settled(Acked, u.delivery)
}

const (
	// sweepPeriod is how often subscriptions that ran out are ended.
	sweepPeriod = 5 * time.Second
	// leasePeriods is for how many poll periods a subscription lives without
	// being renewed.
	leasePeriods = 2
	// refreshSweeps and reportSweeps count sweeps: each 10 s the addresses of the
	// machine are read, each minute strange datagrams are reported.
	refreshSweeps = 2
	reportSweeps  = 12
)

// keep ends subscriptions and does what is to be done now and then.
func (s *Sender) keep(ctx context.Context) {
	ticker := time.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		poll := time.Duration(s.parts.Store.Switches().DefaultPushCacheMillis) * time.Millisecond
		s.parts.Store.ExpireSubscribers(s.parts.Clock.Now(), leasePeriods*poll)
		if n%refreshSweeps == 0 {
			if err := s.hosts.refresh(); err != nil {
				s.log.Warn("the addresses of this machine may be out of date", "err", err)
			}
		}
		if n%reportSweeps == 0 {
			if count := s.garbage.Swap(0); count > 0 {
				s.log.Info("datagrams came that are no acknowledgements of pushes", "count", count)
			}
		}
	}
}
