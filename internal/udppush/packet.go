package udppush

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// gzipMin is the size in bytes from which a packet is compressed. Source: live
	// 1.4.8, which sends 1023 bytes plain and 1024 compressed.
	gzipMin = 1024
	// maxDatagram is the largest payload of a UDP datagram over IPv4.
	maxDatagram = 65507
	// goBuffer is what Go clients read; they drop a longer packet, after they
	// have logged an error. Source: nacos-sdk-go v0.3.2, v1.0.1 and v1.1.4.
	goBuffer = 4024
)

// sizeLimit returns the largest packet that a client can read, in bytes.
func sizeLimit(agent string) int {
	if strings.HasPrefix(agent, "Nacos-Go-Client") || strings.HasPrefix(agent, "nacos-go-sdk") {
		return goBuffer
	}
	return maxDatagram
}

// packet is what is sent to one or more subscribers. It is immutable.
type packet struct {
	number int64 // lastRefTime of the packet: what the client acknowledges
	bytes  []byte
}

// sequence gives the numbers of packets: milliseconds since the Unix epoch where
// that grows strictly, so that they fit the 2^53 of JavaScript. The zero value is
// ready to use.
type sequence struct{ last atomic.Int64 }

func (s *sequence) next(wall int64) int64 {
	for {
		last := s.last.Load()
		n := max(wall, last+1)
		if s.last.CompareAndSwap(last, n) {
			return n
		}
	}
}

// appendPacket appends the text of a packet. data is JSON text, and becomes a
// string.
func appendPacket(b, data []byte, number int64) []byte {
	b = append(b, `{"type":"dom","data":`...)
	b = registry.AppendJSONString(b, string(data))
	b = append(b, `,"lastRefTime":`...)
	b = strconv.AppendInt(b, number, 10)
	return append(b, '}')
}

// compressor compresses packets. It is safe for concurrent use.
type compressor struct{ pool sync.Pool }

// gzipWork is the memory for one compression.
type gzipWork struct {
	writer *gzip.Writer
	out    bytes.Buffer
	plain  []byte
}

// packet makes the packet for a payload.
func (c *compressor) packet(data []byte, number int64) *packet {
	w, _ := c.pool.Get().(*gzipWork)
	if w == nil {
		w = &gzipWork{writer: gzip.NewWriter(nil)}
	}
	defer c.pool.Put(w)
	w.plain = appendPacket(w.plain[:0], data, number)
	if len(w.plain) < gzipMin {
		return &packet{number, bytes.Clone(w.plain)}
	}
	w.out.Reset()
	w.writer.Reset(&w.out)
	// Writing to a bytes.Buffer does not fail.
	_, _ = w.writer.Write(w.plain)
	_ = w.writer.Close()
	return &packet{number, bytes.Clone(w.out.Bytes())}
}

// text returns the packet as it was before it was compressed.
func (p *packet) text() (string, error) {
	if len(p.bytes) < 2 || p.bytes[0] != 0x1f || p.bytes[1] != 0x8b {
		return string(p.bytes), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(p.bytes))
	if err != nil {
		return "", fmt.Errorf("read back packet %d: %w", p.number, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("read back packet %d: %w", p.number, err)
	}
	return string(text), nil
}

// form is all that shapes a payload, beside the view.
type form struct {
	agent, clusters, name string
	// consumer is set when a label selector tells consumers apart.
	consumer netip.Addr
}

// edition makes the packets of one push: each payload is asked for once per form,
// and equal payloads share a packet.
type edition struct {
	view   *registry.View
	key    registry.ServiceKey
	sender *Sender
	wall   int64
	forms  map[form]*packet // nil: there is nothing to send
	made   []payload
}

type payload struct {
	data   []byte
	packet *packet
}

// packet returns the packet for a subscriber, nil when there is none.
func (e *edition) packet(sub *registry.Subscriber) *packet {
	f := form{agent: sub.Agent, clusters: sub.Clusters, name: sub.Form}
	if e.view != nil && e.view.Info.Selector.Type == registry.SelectorLabel {
		f.consumer = sub.Addr.Addr()
	}
	p, known := e.forms[f]
	if !known {
		p = e.make(sub)
		e.forms[f] = p
	}
	return p
}

func (e *edition) make(sub *registry.Subscriber) *packet {
	data := e.sender.parts.Payload(e.view, e.key, sub)
	if data == nil {
		return nil
	}
	for _, m := range e.made {
		if bytes.Equal(m.data, data) {
			return m.packet
		}
	}
	p := e.sender.compressor.packet(data, e.sender.numbers.next(e.wall))
	e.made = append(e.made, payload{data, p})
	return p
}
