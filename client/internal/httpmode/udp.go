package httpmode

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Limits of packets.
const (
	maxDatagram = 64 << 10
	// maxInflated and maxStrange bound a packet after decompression, from a server and
	// from a stranger.
	maxInflated = 16 << 20
	maxStrange  = 1 << 20
	// socketBuffer is asked of the system, so that a burst of pushes is not lost.
	socketBuffer = 1 << 20
)

// receiver receives pushes.
type receiver struct {
	transport *Transport
	events    wire.Events
	conn      *net.UDPConn
}

func newReceiver(address string, t *Transport, events wire.Events) (*receiver, error) {
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(socketBuffer) // the system may allow less
	return &receiver{t, events, conn}, nil
}

func (r *receiver) port() int { return r.conn.LocalAddr().(*net.UDPAddr).Port }

func (r *receiver) close() { _ = r.conn.Close() }

// run reads packets until the socket is closed.
func (r *receiver) run() {
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			r.events.Dropped("udp_error") // as of an ack that nobody took
			continue
		}
		if ack, reason := r.handle(buffer[:n], from); reason != "" {
			r.events.Dropped(reason)
		} else if ack != nil {
			_, _ = r.conn.WriteToUDPAddrPort(ack, from) // lost as a packet may be; the server asks again
		}
	}
}

// handle takes a packet, which it does not keep, and returns what to answer, or why
// the packet is ignored.
func (r *receiver) handle(datagram []byte, from netip.AddrPort) (ack []byte, dropped string) {
	known := r.transport.caller.known(from.Addr())
	limit := int64(maxStrange)
	if known {
		limit = maxInflated
	}
	p, err := readPacket(datagram, limit)
	if err != nil {
		return nil, "udp_malformed"
	}
	switch p.Type {
	case "dom", "service":
		return r.push(p, from.Addr(), known)
	case "dump":
		if !known {
			return nil, "udp_stranger"
		}
		return p.ack("dump-ack", "{}"), ""
	default:
		if !known {
			return nil, "udp_stranger"
		}
		return p.ack("unknown-ack", ""), ""
	}
}

// push takes the list of a service. What comes from a stranger, as behind a balancer,
// or from another server than is polled, or fits services of two namespaces, which a
// packet does not tell apart, is only a hint that something has changed.
func (r *receiver) push(p packet, from netip.Addr, known bool) (ack []byte, dropped string) {
	raw := []byte(p.Data)
	var info grpcv2.ServiceInfo
	if grpcv2.ReadServiceInfo(raw, &info, nil) != nil || info.Name == "" {
		return nil, "udp_malformed"
	}
	subs := r.transport.named(info.Name)
	switch {
	case len(subs) == 0:
		return nil, "udp_unwanted"
	case !known, len(subs) > 1, info.Clusters != "", !subs[0].trusts(from):
		for _, s := range subs {
			s.soon()
		}
		if !known {
			return nil, "udp_stranger"
		}
		return p.ack("push-ack", ""), ""
	}
	s := subs[0]
	s.mu.Lock()
	s.pushed = true
	s.mu.Unlock()
	r.transport.hand(wire.List{Service: s.service, Session: r.transport.session.ID, Raw: raw})
	return p.ack("push-ack", ""), ""
}

// named returns the subscriptions of a service by its name on the wire.
func (t *Transport) named(name string) []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*subscription
	for service, s := range t.subscriptions {
		if t.dialect.name(service) == name || service.Group == ungrouped && service.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// packet is what a server sends.
type packet struct {
	Type string
	Data string
	// LastRefTime is repeated in the acknowledgement, digit by digit: it is a clock
	// of the server's machine and means nothing here.
	LastRefTime json.RawMessage
}

// maxTime is how long a lastRefTime may be: 19 digits and quotes, with room.
const maxTime = 32

var (
	errTooLarge = errors.New("it is too large")
	errTime     = errors.New("lastRefTime is no number")
)

// readPacket reads a datagram, compressed or not, of up to limit bytes then.
func readPacket(datagram []byte, limit int64) (packet, error) {
	if len(datagram) > 1 && datagram[0] == 0x1f && datagram[1] == 0x8b { // the magic number of gzip
		inflated, err := inflate(datagram, limit)
		if err != nil {
			return packet{}, fmt.Errorf("packet: %w", err)
		}
		datagram = inflated
	}
	var p packet
	if err := json.Unmarshal(datagram, &p); err != nil {
		return packet{}, fmt.Errorf("packet: %w", err)
	}
	if len(p.LastRefTime) > maxTime || bytes.ContainsAny(p.LastRefTime, `{[\\`) {
		return packet{}, fmt.Errorf("packet: %w", errTime)
	}
	return p, nil
}

func inflate(b []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	inflated, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(inflated)) > limit {
		return nil, errTooLarge
	}
	return inflated, nil
}

// ack makes an acknowledgement. The time is text, whatever it was.
func (p *packet) ack(kind, data string) []byte {
	b, _ := json.Marshal(struct {
		Type        string `json:"type"`
		LastRefTime string `json:"lastRefTime"`
		Data        string `json:"data"`
	}{kind, string(bytes.Trim(p.LastRefTime, `"`)), data}) // strings
	return b
}
