package grpcmode

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// reset has the server of a peer ask it to go to an address, or anywhere if that is
// empty.
func reset(t *testing.T, p *grpctest.Peer, address string) {
	t.Helper()
	host, port := "", ""
	if address != "" {
		host, port, _ = net.SplitHostPort(address)
	}
	if err := p.Say(grpcv2.ConnectReset, string(grpcv2.AppendConnectReset(nil, 1, host, port))); err != nil {
		t.Fatal(err)
	}
}

// A client that is asked to leave tries the server that was recommended, if it is in the
// list, once and first; then the others, and the one that it leaves last. There is no
// moment without a session.
func TestReset(t *testing.T) {
	for name, tt := range map[string]struct {
		servers []string // in the list
		alive   []string
		to      string
		want    string
		dials   map[string]int // beside those of the first connection
	}{
		"recommended":             {servers: []string{first, second, third}, alive: []string{first, second, third}, to: third, want: third, dials: map[string]int{second: 0}},
		"anywhere":                {servers: []string{first, second}, alive: []string{first, second}, want: second},
		"recommended is dead":     {servers: []string{first, second, third}, alive: []string{first, third}, to: second, want: third, dials: map[string]int{second: 1}},
		"recommended is unlisted": {servers: []string{first, second}, alive: []string{first, second, third}, to: third, want: second, dials: map[string]int{third: 0}},
		"all others are dead":     {servers: []string{first, second, third}, alive: []string{first}, to: second, want: first, dials: map[string]int{second: 1, third: 1}},
		"no other":                {servers: []string{first}, alive: []string{first}, want: first},
		"itself":                  {servers: []string{first, second}, alive: []string{first, second}, to: first, want: first, dials: map[string]int{second: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				scripted := map[string]*grpctest.Server{first: w.serve(first, grpctest.Script{})}
				list := entries{first}
				r := start(t, in(&list), on(w), patient)
				r.connected(t, 1)
				for _, address := range tt.alive {
					if address != first {
						scripted[address] = w.serve(address, grpctest.Script{})
					}
				}
				list.set(t, r.list, tt.servers...)
				time.Sleep(time.Minute)
				reset(t, scripted[first].Peers()[0], tt.to)
				if s := r.connected(t, 2); s.Server != tt.want {
					t.Errorf("went to %s", s.Server)
				}
				for address, n := range tt.dials {
					if got := w.Dials(address); got != n {
						t.Errorf("%d dials of %s, want %d", got, address, n)
					}
				}
				time.Sleep(time.Minute)
				if len(r.told().causes) > 0 || len(r.told().sessions) != 2 {
					t.Errorf("sessions %v, causes %v", r.told().sessions, r.told().causes)
				}
				peers := 0
				for _, s := range scripted {
					peers += len(s.Peers())
				}
				if peers != 1 {
					t.Errorf("%d connections are left", peers)
				}
			})
		})
	}
}

// What was published stays until the engine has published it anew, and goes at once when
// something else is published.
func TestLingering(t *testing.T) {
	orders := service("orders")
	const name = "DEFAULT_GROUP@@orders"
	moved := func(t *testing.T) (*rig, *grpctest.Server, *grpctest.Server) {
		w := newWorld(t)
		a, b := w.serve(first, grpctest.Script{}), w.serve(second, grpctest.Script{})
		list := entries{first}
		r := start(t, in(&list), on(w), patient)
		r.connected(t, 1)
		if err := r.Publish(limited(t), orders, []wire.Instance{instance(1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Subscribe(limited(t), orders); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		list.set(t, r.list, second)
		r.connected(t, 2)
		return r, a, b
	}
	hosts := func(t *testing.T, s *grpctest.Server, want string) {
		t.Helper()
		if got := fmt.Sprint(s.Hosts(name)); got != want {
			t.Errorf("the server has %s, want %s", got, want)
		}
	}
	t.Run("the same", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, a, b := moved(t)
			if err := r.Publish(limited(t), orders, []wire.Instance{instance(1)}); err != nil {
				t.Fatal(err)
			}
			hosts(t, a, "[10.0.0.1:1]")
			hosts(t, b, "[10.0.0.1:1]")
			// A list from there would be compared with those from here.
			if err := a.Peers()[0].Say(grpcv2.NotifySubscriber, `{"requestId":"9","serviceInfo":{"name":"orders","groupName":"DEFAULT_GROUP","hosts":[]}}`); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if heard := a.Peers()[0].Heard(); len(r.told().lists) != 0 || len(heard) != 1 {
				t.Errorf("lists %v, heard %v", r.told().lists, heard)
			}
			time.Sleep(linger)
			synctest.Wait()
			hosts(t, a, "[]")
			hosts(t, b, "[10.0.0.1:1]")
		})
	})
	for what, instances := range map[string][]wire.Instance{"another": {instance(2)}, "none": nil, "changed": {{IP: "10.0.0.1", Port: 1, Cluster: "DEFAULT", Weight: 9}}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, a, _ := moved(t)
				hosts(t, a, "[10.0.0.1:1]")
				if err := r.Publish(limited(t), orders, instances); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				hosts(t, a, "[]")
			})
		})
	}
}

// A session that dies while the client looks for another server is told of and closed.
func TestDeathOnTheMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{})
		list := entries{first}
		r := start(t, in(&list), on(w), patient)
		r.connected(t, 1)
		list.set(t, r.list, second)
		time.Sleep(10 * time.Second)
		if len(r.told().causes) > 0 {
			t.Errorf("told %v although there is a session", r.told().causes)
		}
		server.Peers()[0].End(nil)
		r.wait(t, "loss", func() bool { return !r.up })
		w.serve(second, grpctest.Script{})
		r.connected(t, 2)
		synctest.Wait()
		if n := len(server.Peers()); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A server that sends everyone on is not followed in circles.
func TestResetsInCircles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		servers := map[string]*grpctest.Server{first: w.serve(first, grpctest.Script{}), second: w.serve(second, grpctest.Script{})}
		r := start(t, to(first, second), on(w), patient)
		begun := time.Now()
		for n := range 20 {
			s := r.connected(t, n+1)
			peers := servers[s.Server].Peers()
			reset(t, peers[len(peers)-1], "")
			reset(t, peers[len(peers)-1], "")
		}
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("20 moves in %v", took)
		}
		if len(r.told().causes) > 0 {
			t.Errorf("causes %v", r.told().causes)
		}
	})
}
