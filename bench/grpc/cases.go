package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

const service = `"headers":{},"namespace":"public","serviceName":"orders-service","groupName":"DEFAULT_GROUP","module":"naming"`

func instanceJSON(n int) string {
	return fmt.Sprintf(`{"ip":"10.0.%d.%d","port":8080,"weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,"clusterName":"DEFAULT",`+
		`"serviceName":"DEFAULT_GROUP@@orders-service","metadata":{"zone":"eu-1a","version":"1.4.2"}}`, n/250, n%250+1)
}

// The sizes of Rollcall's answers, for the yardstick: of a registration, a query of
// ten instances, and a push of one.
const (
	registered = 90
	ofTen      = 4100
	ofOne      = 640
)

// register has each worker register its instance over and over.
func register(ctx context.Context, o options, t *target) (result, error) {
	messages := make([][]byte, o.workers)
	for n := range messages {
		messages[n] = t.payload(grpcv2.InstanceType, `{`+service+`,"type":"registerInstance","instance":`+instanceJSON(n)+`}`, registered)
	}
	return calls(ctx, o, t, messages)
}

// query asks for a service of ten instances.
func query(ctx context.Context, o options, t *target) (result, error) {
	clients, err := dialAll(ctx, t, 10)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	for n, c := range clients {
		if err := c.do(ctx, t.payload(grpcv2.InstanceType, `{`+service+`,"type":"registerInstance","instance":`+instanceJSON(n)+`}`, registered)); err != nil {
			return nil, err
		}
	}
	m := t.payload(grpcv2.ServiceQuery, `{`+service+`,"cluster":"","healthyOnly":false,"udpPort":0}`, ofTen)
	return calls(ctx, o, t, slices.Repeat([][]byte{m}, o.workers))
}

// calls has each worker make one call after the other on its connection.
func calls(ctx context.Context, o options, t *target, messages [][]byte) (result, error) {
	clients, err := dialAll(ctx, t, o.workers)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	if _, _, err := hammer(ctx, clients, messages, time.Second); err != nil { // to warm up
		return nil, err
	}
	before, err := t.usage()
	if err != nil {
		return nil, err
	}
	done, took, err := hammer(ctx, clients, messages, o.duration)
	if err != nil {
		return nil, err
	}
	after, err := t.usage()
	if err != nil {
		return nil, err
	}
	return result{
		{"server CPU per call", micros(after.CPU-before.CPU) / float64(done), "µs"},
		{"calls per second", float64(done) / took.Seconds(), ""},
	}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func hammer(ctx context.Context, clients []*client, messages [][]byte, d time.Duration) (done int64, took time.Duration, err error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	begin := time.Now()
	var workers sync.WaitGroup
	for n, c := range clients {
		workers.Go(func() {
			for time.Since(begin) < d && failed.Load() == nil {
				if err := c.do(ctx, messages[n]); err != nil {
					failed.Store(&err)
					return
				}
				count.Add(1)
			}
		})
	}
	workers.Wait()
	if e := failed.Load(); e != nil {
		return 0, 0, *e
	}
	return count.Load(), time.Since(begin), nil
}

// fanout changes one service every half second and measures when each subscriber
// has been told, which then acknowledges it.
func fanout(ctx context.Context, o options, t *target) (result, error) {
	clients, err := dialAll(ctx, t, o.clients)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	var changed atomic.Int64 // when, in nanoseconds; 0: nothing is measured
	times := make(chan time.Duration, o.clients)
	for _, c := range clients {
		go c.listen(&changed, times)
	}
	for _, c := range clients {
		if err := c.do(ctx, t.payload(grpcv2.SubscribeService, `{`+service+`,"subscribe":true,"clusters":""}`, ofOne)); err != nil {
			return nil, err
		}
	}
	time.Sleep(2 * time.Second) // for the pushes that welcome subscribers
	publisher, err := dialAll(ctx, t, 1)
	if err != nil {
		return nil, err
	}
	defer closeAll(publisher)
	var all []time.Duration
	before, err := t.usage()
	if err != nil {
		return nil, err
	}
	rounds := max(int(o.duration/(500*time.Millisecond)), 1)
	for n := range rounds {
		changed.Store(time.Now().UnixNano())
		if err := publisher[0].change(ctx, n); err != nil {
			return nil, err
		}
		for range clients {
			select {
			case took := <-times:
				all = append(all, took)
			case <-time.After(10 * time.Second):
				return nil, fmt.Errorf("round %d: not everybody was told", n)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	after, err := t.usage()
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	return result{
		{"change until told, median", micros(all[len(all)/2]) / 1000, "ms"},
		{"change until told, 99th of 100", micros(all[len(all)*99/100]) / 1000, "ms"},
		{"server CPU per push", micros(after.CPU-before.CPU) / float64(len(all)), "µs"},
	}, nil
}

// change has all subscribers told of something.
func (c *client) change(ctx context.Context, n int) error {
	if c.t.kind == rollcallServer {
		return c.do(ctx, c.t.payload(grpcv2.InstanceType, `{`+service+`,"type":"registerInstance","instance":`+instanceJSON(n)+`}`, 0))
	}
	_, err := c.call(ctx, "broadcast", c.t.payload("", "", ofOne))
	return err
}

// listen acknowledges pushes and tells how long after the change each came.
func (c *client) listen(changed *atomic.Int64, times chan<- time.Duration) {
	for {
		var push []byte
		if c.stream.RecvMsg(&push) != nil {
			return
		}
		now, since := time.Now().UnixNano(), changed.Load()
		ack := `{"resultCode":200,"errorCode":0,"success":true,"requestId":"` + requestID(push) + `"}`
		if c.stream.SendMsg(c.t.payload("NotifySubscriberResponse", ack, 0)) != nil {
			return
		}
		if since != 0 {
			times <- time.Duration(now - since)
		}
	}
}

func requestID(push []byte) string {
	_, rest, _ := bytes.Cut(push, []byte(`"requestId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// idle measures connections with a stream and a subscription that do nothing but
// look after their connection every five seconds, as SDKs do.
func idle(ctx context.Context, o options, t *target) (result, error) {
	warm, err := dialAll(ctx, t, 10)
	if err != nil {
		return nil, err
	}
	defer closeAll(warm)
	time.Sleep(time.Second)
	empty, err := t.usage()
	if err != nil {
		return nil, err
	}
	clients, err := dialAll(ctx, t, o.clients)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	for _, c := range clients {
		go c.listen(new(atomic.Int64), nil)
		if err := c.do(ctx, t.payload(grpcv2.SubscribeService, `{`+service+`,"subscribe":true,"clusters":""}`, ofOne)); err != nil {
			return nil, err
		}
	}
	health := t.payload(grpcv2.HealthCheck, `{}`, 60)
	begin := time.Now()
	before, err := t.usage()
	if err != nil {
		return nil, err
	}
	for time.Since(begin) < max(o.duration, 10*time.Second) {
		pause := 5 * time.Second / time.Duration(len(clients))
		for _, c := range clients {
			if err := c.do(ctx, health); err != nil {
				return nil, err
			}
			time.Sleep(pause)
		}
	}
	after, err := t.usage()
	if err != nil {
		return nil, err
	}
	share := (after.CPU - before.CPU).Seconds() / time.Since(begin).Seconds()
	return result{
		{"memory per connection", float64(after.Resident-empty.Resident) / float64(len(clients)) / 1024, "KiB"},
		{"CPU of " + strconv.Itoa(len(clients)) + " connections", 100 * share, "%"},
	}, nil
}
