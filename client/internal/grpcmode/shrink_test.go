package grpcmode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// port is an instance, by its port.
type port struct{ Port int }

// batches is a server that knows batches, of one connection and one service.
type batches struct {
	adds   bool // what is published comes beside what is there, as r-nacos does; else in its place
	single bool // a deregistration removes the one instance; else all
	stale  time.Duration
	secret bool // the list is not shown

	mu    sync.Mutex
	held  []int
	shown []int
	log   []string
}

func (b *batches) answer(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
	var q struct {
		Type      string
		Instance  port
		Instances []port
	}
	_ = json.Unmarshal(f.Body, &q)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch f.Type {
	case grpcv2.InstanceType, grpcv2.BatchInstance:
		b.change(q.Type == grpcv2.Deregister, append(q.Instances, q.Instance))
		return grpctest.Answer(grpcv2.InstanceResponse, ""), true
	case grpcv2.ServiceQuery:
		b.log = append(b.log, "query")
		if b.secret {
			return grpctest.Refuse(codeForbidden, "authorization failed!"), true
		}
		var hosts []string
		for _, port := range b.shown {
			hosts = append(hosts, fmt.Sprintf(`{"ip":"10.0.0.1","port":%d}`, port))
		}
		return grpctest.Answer(grpcv2.QueryServiceResponse, `"serviceInfo":{"hosts":[`+strings.Join(hosts, ",")+`]}`), true
	}
	return grpctest.Message{}, false
}

// change publishes or deregisters instances; those without a port are none. The caller
// holds mu.
func (b *batches) change(deregister bool, instances []port) {
	before := b.held
	var ports []int
	for _, i := range instances {
		if i.Port > 0 {
			ports = append(ports, i.Port)
		}
	}
	named := func(n int) bool { return slices.Contains(ports, n) }
	switch {
	case deregister && b.single:
		b.held = slices.DeleteFunc(slices.Clone(before), named)
	case deregister:
		b.held = nil
	case b.adds:
		b.held = append(slices.DeleteFunc(slices.Clone(before), named), ports...)
	default:
		b.held = ports
	}
	slices.Sort(b.held)
	what := "publish"
	if deregister {
		what = "deregister"
	}
	b.log = append(b.log, what)
	now := b.held
	time.AfterFunc(b.stale, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.shown = now
	})
}

func (b *batches) said() (held, log string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, log = fmt.Sprint(b.held), strings.Join(b.log, " ")
	b.log = nil
	return held, log
}

// A smaller set removes what is not in it, also on servers where a batch only adds.
func TestSmallerSet(t *testing.T) {
	for name, test := range map[string]struct {
		server        *batches
		first, second string // what is asked for the first smaller set, and for the next
		all           string // what is asked for none in the place of three
	}{
		"replaces":                    {&batches{}, "publish query", "publish query", "deregister query"},
		"replaces, told later":        {&batches{stale: 500 * time.Millisecond}, "publish query query query", "publish", "deregister"},
		"adds":                        {&batches{adds: true}, "publish query query query query query query query deregister publish query", "publish query deregister publish query", "deregister query"},
		"adds, and removes by name":   {&batches{adds: true, single: true}, "publish query query query query query query query deregister publish query", "publish query deregister publish query", "deregister query deregister deregister"},
		"does not let the client ask": {&batches{secret: true}, "publish query deregister publish query", "publish query deregister publish query", "deregister query deregister deregister"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := test.server
				w.serve(first, grpctest.Script{Answer: b.answer})
				r := start(t, to(first), on(w))
				r.connected(t, 1)
				publish := func(want string, ports ...int) {
					t.Helper()
					time.Sleep(time.Second)
					if err := r.Publish(limited(t), service("orders"), set(ports...)); err != nil {
						t.Fatal(err)
					}
					if held, log := b.said(); held != fmt.Sprint(ports) || log != want {
						t.Errorf("%v after %s, want %v after %s", held, log, ports, want)
					}
				}
				publish("publish", 1, 2, 3, 4)
				publish(test.first, 1, 2, 4)
				publish(test.second, 2, 4)
				publish(test.second, 4)
				publish("deregister")
				publish("publish", 5, 6, 7)
				publish(test.all)
			})
		})
	}
}

// What somebody else has registered as well stays, and is no reason to fail.
func TestSmallerSetOfTwoClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := new(batches)
		w.serve(first, grpctest.Script{Answer: func(p *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			if f.Type == grpcv2.ServiceQuery {
				b.mu.Lock()
				defer b.mu.Unlock()
				return grpctest.Answer(grpcv2.QueryServiceResponse, `"serviceInfo":{"hosts":[{"ip":"10.0.0.1","port":1}]}`), true
			}
			return b.answer(p, f)
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		for _, instances := range [][]wire.Instance{set(1, 2), set(2)} {
			if err := r.Publish(limited(t), service("orders"), instances); err != nil {
				t.Fatal(err)
			}
		}
		if held, _ := b.said(); held != "[2]" {
			t.Errorf("held %v", held)
		}
	})
}
