package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// pushes is how many changes are timed.
const pushes = 200

// pushPause lies between two changes: the service is quiet again, and its next
// change leaves at once.
const pushPause = 300 * time.Millisecond

// measurePush measures the time from the request that changes a service, before
// its first byte, to the packet that tells a subscriber, on a server that does
// nothing else.
func measurePush(ctx context.Context, b *bench) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	p := &population{prefix: "svc-", services: 1, each: 1}
	f, err := dial(server.address, 1)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.each(ctx, p.register(), 0, 1); err != nil {
		return nil, err
	}
	s, err := newSubscriber()
	if err != nil {
		return nil, err
	}
	defer s.close()
	var told, answered []float64
	progress("push: %d changes", pushes)
	for n := range pushes {
		if n%renewEvery == 0 {
			if err := f.each(ctx, s.subscribe(p), 0, 1); err != nil {
				return nil, err
			}
		}
		if err := wait(ctx, pushPause); err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := f.each(ctx, p.weigh(), n, n+1); err != nil {
			return nil, err
		}
		answered = append(answered, time.Since(begun).Seconds()*1e3)
		at, err := s.told(n)
		if err != nil {
			return nil, err
		}
		told = append(told, at.Sub(begun).Seconds()*1e3)
	}
	row := func(title string, list []float64) []string {
		return []string{
			title, fmt.Sprintf("%.2f ms", quantile(list, 0.5)),
			fmt.Sprintf("%.2f ms", quantile(list, 0.95)), fmt.Sprintf("%.2f ms", quantile(list, 1)),
		}
	}
	return []table{{
		marker: "push", head: []string{fmt.Sprintf("%d changes of a quiet service", pushes), "median", "95th percentile", "longest"},
		rows: [][]string{row("change to answer", answered), row("change to UDP packet", told)},
	}}, nil
}

// weigh registers the one instance again with weight n+2.
func (p *population) weigh() *call {
	again := p.register()
	return &call{"change", func(b []byte, n int) []byte {
		return append(b, bytes.Replace(again.build(nil, 0), []byte("&weight=1.0&"), fmt.Appendf(nil, "&weight=%d&", n+2), 1)...)
	}, isOK}
}

// subscriber reads the packets for one service, as a Java client does.
type subscriber struct {
	conn    *net.UDPConn
	packets chan packet
}

type packet struct {
	at   time.Time
	data string
	err  error
}

// renewEvery is after how many changes the subscriber looks up again, as a client
// does every ten seconds.
const renewEvery = 20

func newSubscriber() (*subscriber, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	s := &subscriber{conn: conn, packets: make(chan packet, pushes)}
	go s.receive()
	return s, nil
}

// subscribe is a look-up that asks for packets.
func (s *subscriber) subscribe(p *population) *call {
	list := p.list()
	port := fmt.Appendf(nil, "&udpPort=%d&", s.conn.LocalAddr().(*net.UDPAddr).Port)
	return &call{"subscribe", func(b []byte, n int) []byte {
		return append(b, bytes.Replace(list.build(nil, n), []byte("&udpPort=0&"), port, 1)...)
	}, list.check}
}

func (s *subscriber) close() { _ = s.conn.Close() }

// receive acknowledges packets and hands them on, until the socket is closed. What
// finds the channel full is dropped.
func (s *subscriber) receive() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		at := time.Now()
		if err != nil {
			return
		}
		var message struct {
			Data        string `json:"data"`
			LastRefTime int64  `json:"lastRefTime"`
		}
		text, err := plain(buf[:n])
		if err == nil {
			err = json.Unmarshal(text, &message)
		}
		select {
		case s.packets <- packet{at, message.Data, err}:
		default:
		}
		ack := fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%d","data":""}`, message.LastRefTime)
		if _, err := s.conn.WriteToUDPAddrPort(ack, from); err != nil {
			return
		}
	}
}

// plain is a packet that may be compressed.
func plain(b []byte) ([]byte, error) {
	if len(b) < 2 || b[0] != 0x1f || b[1] != 0x8b {
		return b, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// told waits for the packet that tells of change n, and returns when it came.
func (s *subscriber) told(n int) (time.Time, error) {
	want := fmt.Sprintf(`"weight":%d.0`, n+2)
	timeout := time.After(answerTimeout)
	for {
		select {
		case p := <-s.packets:
			if p.err != nil {
				return p.at, p.err
			}
			if bytes.Contains([]byte(p.data), []byte(want)) {
				return p.at, nil
			}
		case <-timeout:
			return time.Time{}, fmt.Errorf("no packet told of change %d", n)
		}
	}
}
