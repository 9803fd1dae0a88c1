package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
)

// maxPacket is the largest packet that a subscriber reads, in bytes; from 1 KiB on
// they are compressed, so that this is a service of some thousands. What is longer is
// cut off, and then counts as not told.
const maxPacket = 16 << 10

// maxPlain bounds a packet after it was uncompressed.
const maxPlain = 4 << 20

// udpSubscriber is told by packets to its socket.
type udpSubscriber struct {
	conn   *net.UDPConn
	stop   func() bool
	told   Listener
	reader sync.WaitGroup
}

var errSession = errors.New("a look-up needs a session over HTTP")

func newUDPSubscriber(ctx context.Context, l Listener) (*udpSubscriber, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	u := &udpSubscriber{conn: conn, told: l}
	u.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	u.reader.Go(u.read)
	return u, nil
}

func (u *udpSubscriber) Subscribe(service fleet.Service, via Session) error {
	s, ok := via.(*httpSession)
	if !ok {
		return errSession
	}
	list, err := s.list(service, u.conn.LocalAddr().(*net.UDPAddr).Port)
	if err == nil {
		u.told.Told(see(list, ""))
	}
	return err
}

func (u *udpSubscriber) Renew(service fleet.Service, via Session) error {
	return u.Subscribe(service, via)
}

func (u *udpSubscriber) Session() Session { return nil }

func (u *udpSubscriber) Ended() <-chan struct{} { return nil }

func (u *udpSubscriber) Close() {
	u.stop()
	_ = u.conn.Close()
	u.reader.Wait()
}

// read acknowledges packets until the socket is closed.
func (u *udpSubscriber) read() {
	buf := make([]byte, maxPacket)
	var p packet
	for {
		n, from, err := u.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if err := p.read(buf[:n]); err != nil {
			continue // not told, which is what a client makes of it
		}
		seen := see(p.text, `\`)
		seen.Pushed = true
		u.told.Told(seen)
		if _, err := u.conn.WriteToUDPAddrPort(p.ack(), from); err != nil {
			return
		}
		u.told.Acked(seen)
	}
}

// packet is a packet of the server, in memory that is used again.
type packet struct {
	text   []byte
	number []byte // lastRefTime
	plain  bytes.Buffer
	zipped *gzip.Reader
	answer []byte
}

var errPacket = errors.New("it is no push")

// read reads a packet, which may be compressed.
func (p *packet) read(b []byte) error {
	p.text = b
	if len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b {
		if err := p.unzip(b); err != nil {
			return err
		}
		p.text = p.plain.Bytes()
	}
	// Within the data, which is text, quotation marks are escaped.
	rest, found := member(p.text, "lastRefTime")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	p.number = rest[:n]
	if _, typed := member(p.text, "type"); !found || n == 0 || !typed {
		return fmt.Errorf("%w: %.*q", errPacket, shown, p.text)
	}
	return nil
}

func (p *packet) unzip(b []byte) (err error) {
	in := bytes.NewReader(b)
	if p.zipped == nil {
		p.zipped, err = gzip.NewReader(in)
	} else {
		err = p.zipped.Reset(in)
	}
	if err != nil {
		p.zipped = nil
		return err
	}
	p.plain.Reset()
	_, err = io.Copy(&p.plain, io.LimitReader(p.zipped, maxPlain))
	return err
}

// ack is the acknowledgement of the packet.
func (p *packet) ack() []byte {
	p.answer = append(p.answer[:0], `{"type":"push-ack","lastRefTime":"`...)
	p.answer = append(p.answer, p.number...)
	p.answer = append(p.answer, `","data":""}`...)
	return p.answer
}
