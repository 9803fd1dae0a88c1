package grpcmode

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// The addresses of servers in the tests.
const (
	first  = "10.1.0.1:9848"
	second = "10.1.0.2:9848"
	third  = "10.1.0.3:9848"
)

// A connection is registered whether a server promises its abilities and keeps that,
// promises and does not, or promises nothing.
func TestSetup(t *testing.T) {
	unsettled := func() func(*grpctest.Peer, grpctest.Frame) (grpctest.Message, bool) {
		var n atomic.Int64
		return func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			if f.Type == grpcv2.HealthCheck && n.Add(1) < 4 {
				return grpctest.Refuse(grpcv2.CodeUnregistered, "Connection is unregistered."), true
			}
			return grpctest.Message{}, false
		}
	}
	for name, tt := range map[string]struct {
		script            grpctest.Script
		persistent, fuzzy bool
		least, most       time.Duration
	}{
		"2.0":                       {script: grpctest.Script{}, most: 100 * time.Millisecond},
		"2.0, slow to register":     {script: grpctest.Script{Answer: unsettled()}, least: 70 * time.Millisecond, most: 200 * time.Millisecond},
		"2.5":                       {script: grpctest.Script{Negotiates: true, Abilities: []string{grpcv2.AbilityPersistent}}, persistent: true, most: 100 * time.Millisecond},
		"3.0":                       {script: grpctest.Script{Negotiates: true, Abilities: []string{grpcv2.AbilityPersistent, "fuzzyWatch", "lock", "mcp"}}, persistent: true, fuzzy: true, most: 100 * time.Millisecond},
		"an empty table":            {script: grpctest.Script{Negotiates: true, Abilities: []string{}}, most: 100 * time.Millisecond},
		"a promise that is broken":  {script: grpctest.Script{Negotiates: true}, least: negotiation, most: negotiation + time.Second},
		"a table without a promise": {script: grpctest.Script{Abilities: []string{grpcv2.AbilityPersistent}}, most: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				server := w.serve(first, tt.script)
				begun := time.Now()
				r := start(t, to(first), on(w), func(c *Config) {
					c.AppName, c.Labels, c.LocalIP = "shop", map[string]string{"zone": "a"}, "192.0.2.7"
				})
				s := r.connected(t, 1)
				if took := time.Since(begun); took < tt.least || took > tt.most {
					t.Errorf("it took %v", took)
				}
				if s.Persistent != tt.persistent || s.Fuzzy != tt.fuzzy {
					t.Errorf("session %+v", s)
				}
				want := `{"headers":{},"module":"internal","clientVersion":"` + agent +
					`","tenant":"","labels":{"AppName":"shop","app_zone":"a","module":"naming","source":"sdk"},"abilityTable":{"fuzzyWatch":true}}`
				peer := server.Peers()[0]
				if got := peer.Setup(); got != want {
					t.Errorf("setup %s\nwant %s", got, want)
				}
				if asked := peer.Asked()[0]; asked.Type != grpcv2.ServerCheck || asked.ClientIP != "192.0.2.7" || asked.Headers["app"] != "shop" {
					t.Errorf("asked %+v", asked)
				}
			})
		})
	}
}

// After 5 s without a word a server is asked for a sign of life, and not before.
func TestSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{Negotiates: true, Abilities: []string{}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		checks := func() (n int) {
			for _, f := range server.Peers()[0].Asked() {
				if f.Type == grpcv2.HealthCheck {
					n++
				}
			}
			return n
		}
		before := checks() // of the setup
		time.Sleep(21 * time.Second)
		if n := checks() - before; n != 4 {
			t.Errorf("%d questions in 21 s", n)
		}
		before = checks()
		for range 10 {
			time.Sleep(2 * time.Second)
			if _, err := r.Query(limited(t), service("orders")); err != nil {
				t.Fatal(err)
			}
		}
		if n := checks() - before; n != 0 {
			t.Errorf("%d questions although the server was heard", n)
		}
		if len(r.told().causes) > 0 || len(r.told().sessions) != 1 {
			t.Errorf("sessions %v, causes %v", r.told().sessions, r.told().causes)
		}
	})
}

// What a server asks on the stream is acknowledged, with the same number; what is not
// understood is not.
func TestAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{Negotiates: true, Abilities: []string{"fuzzyWatch"}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		peer := server.Peers()[0]
		for _, m := range []struct{ kind, body string }{
			{grpcv2.ClientDetection, string(grpcv2.AppendClientDetection(nil, 1))},
			{grpcv2.NotifySubscriber, `{"headers":{},"requestId":"2","serviceInfo":{"name":"nobody","groupName":"g","hosts":[]}}`},
			{grpcv2.FuzzyWatchChange, string(grpcv2.AppendFuzzyNotify(nil, 3, grpcv2.FuzzyChange{Service: "a@@b@@c", Change: grpcv2.AddService}))},
			{grpcv2.NotifySubscriber, `{"headers":{},"requestId":"4","serviceInfo":null}`},
			{grpcv2.NotifySubscriber, `{"headers":{},"requestId":"5","serviceInfo":{"name":`},
			{grpcv2.ClientDetection, `[]`},
			{"ConfigChangeNotifyRequest", `{"requestId":"6"}`},
			{grpcv2.ClientDetection, string(grpcv2.AppendClientDetection(nil, 7))},
		} {
			if err := peer.Say(m.kind, m.body); err != nil {
				t.Fatal(err)
			}
		}
		if err := peer.Send([]byte("\xff\xff\xff\xff no message")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var got []string
		for _, f := range peer.Heard() {
			a, err := grpcv2.DecodeResponse(f.Body)
			if err != nil || !a.OK() {
				t.Errorf("%s %s is no acknowledgement", f.Type, f.Body)
			}
			got = append(got, f.Type+" "+a.RequestID)
		}
		want := []string{
			"ClientDetectionResponse 1", "NotifySubscriberResponse 2", "NamingFuzzyWatchChangeNotifyResponse 3",
			"NotifySubscriberResponse 4", "ClientDetectionResponse 7",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		dropped := []string{"grpc_unwanted", "grpc_empty", "grpc_malformed", "grpc_malformed", "grpc_unknown", "grpc_malformed"}
		if fmt.Sprint(r.told().dropped) != fmt.Sprint(dropped) {
			t.Errorf("dropped %v\nwant %v", r.told().dropped, dropped)
		}
		if len(r.told().lists)+len(r.told().changes)+len(r.told().causes) > 0 {
			t.Errorf("told %v %v %v", r.told().lists, r.told().changes, r.told().causes)
		}
	})
}

// Whatever breaks a connection is noticed within 8 s, and when it is mended there is a
// new one within the longest pause.
func TestBrokenNetworks(t *testing.T) {
	for name, fault := range map[string]faulttest.Fault{
		"cut": faulttest.Refused, "black hole": faulttest.BlackHole, "half open": faulttest.HalfOpen,
	} {
		for _, down := range []time.Duration{10 * time.Second, time.Minute} {
			t.Run(fmt.Sprint(name, " for ", down), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.serve(first, grpctest.Script{Negotiates: true, Abilities: []string{}})
					r := start(t, to(first), on(w), patient)
					before := r.connected(t, 1)
					time.Sleep(time.Minute)
					w.Set(first, fault)
					begun := time.Now()
					r.wait(t, "loss", func() bool { return !r.up })
					if took := time.Since(begun); took > 8*time.Second {
						t.Errorf("noticed after %v", took)
					}
					if _, err := r.Query(limited(t), service("orders")); wire.KindOf(err) != wire.NotConnected || err.Error() == "" {
						t.Errorf("query: %v", err)
					}
					time.Sleep(down - time.Since(begun))
					dials := w.Dials(first)
					w.Set(first, faulttest.Healthy)
					begun = time.Now()
					if s := r.connected(t, 2); s.ID == before.ID {
						t.Error("two sessions share a name")
					}
					if took := time.Since(begun); took > 8*time.Second {
						t.Errorf("connected after %v", took)
					}
					if most := int(down/time.Second) + 5; dials > most {
						t.Errorf("%d dials in %v", dials, down)
					}
				})
			})
		}
	}
}

// A call that is not answered makes the client look at once whether the server is there.
func TestSilenceAfterACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(first, grpctest.Script{Negotiates: true, Abilities: []string{}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		w.Set(first, faulttest.BlackHole)
		begun := time.Now()
		if _, err := r.Query(limited(t), service("orders")); wire.KindOf(err) != wire.NotConnected {
			t.Errorf("got %v", err)
		}
		r.wait(t, "loss", func() bool { return !r.up })
		if took := time.Since(begun); took != 6*time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// A server that is killed is missed at once, and found again when it is back.
func TestKilledServer(t *testing.T) {
	for _, down := range []time.Duration{5 * time.Second, time.Minute} {
		t.Run(down.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				script := grpctest.Script{Negotiates: true, Abilities: []string{}}
				w.serve(first, script)
				r := start(t, to(first), on(w), patient)
				r.connected(t, 1)
				time.Sleep(30 * time.Second)
				begun := time.Now()
				w.kill(first)
				r.wait(t, "loss", func() bool { return !r.up })
				if took := time.Since(begun); took > 100*time.Millisecond {
					t.Errorf("noticed after %v", took)
				}
				time.Sleep(down)
				w.serve(first, script)
				begun = time.Now()
				r.connected(t, 2)
				if took := time.Since(begun); took > 6*time.Second {
					t.Errorf("connected after %v", took)
				}
			})
		})
	}
}

// A server that says that it is starting is waited for. It is not dead, and that is
// what the client says, too.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ready atomic.Bool
		w.serve(first, grpctest.Script{Answer: func(*grpctest.Peer, grpctest.Frame) (grpctest.Message, bool) {
			return grpctest.Refuse(grpcv2.CodeStarting, "Server is starting,please try later."), !ready.Load()
		}})
		r := start(t, to(first), on(w), patient)
		time.Sleep(10 * time.Second)
		for _, cause := range r.told().causes {
			if wire.KindOf(cause) != wire.NotReady {
				t.Errorf("told %v", cause)
			}
		}
		if n := w.Dials(first); n < 8 || n > 40 {
			t.Errorf("%d dials in 10 s", n)
		}
		ready.Store(true)
		begun := time.Now()
		r.connected(t, 1)
		if took := time.Since(begun); took > notReady+100*time.Millisecond {
			t.Errorf("connected after %v", took)
		}
	})
}

// Slow is not dead: an answer after 2.9 s is taken. One that would come after 10 s ends
// the call after 3 s, or with its context.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var delay atomic.Int64
		w.serve(first, grpctest.Script{Negotiates: true, Abilities: []string{}, Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			if f.Type != grpcv2.HealthCheck {
				time.Sleep(time.Duration(delay.Load()))
			}
			return grpctest.Message{}, false
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		delay.Store(int64(2900 * time.Millisecond))
		if _, err := r.Query(limited(t), service("orders")); err != nil {
			t.Error(err)
		}
		delay.Store(int64(10 * time.Second))
		begun := time.Now()
		_, err := r.Query(limited(t), service("orders"))
		if took := time.Since(begun); wire.KindOf(err) != wire.NotConnected || took != 3*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
		defer cancel()
		begun = time.Now()
		_, err = r.Query(ctx, service("orders"))
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 700*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		time.Sleep(time.Minute)
		if len(r.told().sessions) != 1 || len(r.told().causes) > 0 {
			t.Errorf("sessions %v, causes %v", r.told().sessions, r.told().causes)
		}
	})
}

// Refusals of a request leave the connection alone, but for those that say that the
// server does not know it.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		code    int32
		message string
		kind    wire.Kind
		ends    bool
	}{
		{code: 300, kind: wire.NotReady},
		{code: 301, kind: wire.Unregistered, ends: true},
		{code: -401, kind: wire.Unregistered, ends: true},
		{code: 302, kind: wire.Unsupported},
		{code: 501, kind: wire.Unsupported},
		{code: 400, message: "Param 'serviceName' is illegal", kind: wire.Invalid},
		{code: -400, kind: wire.Invalid},
		{code: 400, message: "errMsg: Current service g@@s is persistent service, can't register ephemeral instance.", kind: wire.Conflict},
		{code: 400, message: "errMsg: Current service g@@s is ephemeral service, can't register persistent instance.", kind: wire.Conflict},
		{code: 401, kind: wire.Unauthorized},
		{code: 403, message: "authorization failed!", kind: wire.Forbidden},
		{code: 403, message: "token invalid!", kind: wire.Unauthorized},
		{code: 403, message: "Code: 401, Message: User not found! Please check", kind: wire.Unauthorized},
		{code: 404, kind: wire.NotFound},
		{code: 20404, kind: wire.NotFound},
		{code: 409, kind: wire.Conflict},
		{code: 500, message: "java.lang.NullPointerException", kind: wire.Unknown},
		{code: 502, kind: wire.Overloaded},
		{code: 503, message: "over threshold", kind: wire.Overloaded},
		{code: -503, kind: wire.Overloaded},
		{code: 50310, kind: wire.Overloaded},
	} {
		t.Run(fmt.Sprint(tt.code, tt.message), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.serve(first, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
					return grpctest.Refuse(tt.code, tt.message), f.Type == grpcv2.InstanceType
				}})
				r := start(t, to(first), on(w))
				r.connected(t, 1)
				err := r.Publish(limited(t), service("orders"), []wire.Instance{instance(1)})
				e, ok := err.(*wire.Error) //nolint:errorlint // that it is this type is the contract
				if !ok || e.Kind != tt.kind || e.Server != first || e.ErrorCode != int(tt.code) || e.ResultCode != 500 || e.Message != tt.message || e.Attempts != 1 {
					t.Fatalf("got %#v", err)
				}
				if tt.ends {
					r.connected(t, 2)
					return
				}
				time.Sleep(time.Minute)
				if len(r.told().sessions) != 1 || len(r.told().causes) > 0 {
					t.Errorf("sessions %v, causes %v", r.told().sessions, r.told().causes)
				}
			})
		})
	}
}

// A server that is asked for a sign of life and does not know the connection is left:
// it is a connection that gets no pushes.
func TestForgottenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var forgotten atomic.Bool
		w.serve(first, grpctest.Script{Answer: func(p *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			return grpctest.Refuse(grpcv2.CodeUnregistered, ""), p.ID == 1 && forgotten.Load() && f.Type == grpcv2.HealthCheck
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		forgotten.Store(true)
		r.connected(t, 2)
	})
}

// However a server ends the stream, the client makes a new connection, for a stream is
// what pushes come on.
func TestStreamEnds(t *testing.T) {
	for name, cause := range map[string]error{"OK": nil, "error": fmt.Errorf("evicted")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				server := w.serve(first, grpctest.Script{})
				r := start(t, to(first), on(w))
				r.connected(t, 1)
				server.Peers()[0].End(cause)
				r.connected(t, 2)
				synctest.Wait()
				if n := len(server.Peers()); n != 1 {
					t.Errorf("%d connections", n)
				}
				if len(r.told().causes) != 1 || wire.KindOf(r.told().causes[0]) != wire.NotConnected {
					t.Errorf("causes %v", r.told().causes)
				}
			})
		})
	}
}

// A server that throws out whoever comes is not stormed.
func TestRevolvingDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{})
		r := start(t, to(first), on(w), patient)
		for n := range 20 {
			r.connected(t, n+1)
			server.Peers()[0].End(nil)
		}
		begun := time.Now()
		r.connected(t, 21)
		time.Sleep(time.Minute)
		if n := w.Dials(first); n > 25 {
			t.Errorf("%d dials; the last took %v", n, time.Since(begun))
		}
	})
}

// Of a list of servers, those that refuse are passed over, each being asked once a
// round.
func TestRefusingServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(t, to(first, second, third), on(w), patient)
		time.Sleep(20 * time.Second)
		a, b, c := w.Dials(first), w.Dials(second), w.Dials(third)
		if a != b || b != c || a > 30 {
			t.Errorf("dials %d %d %d", a, b, c)
		}
		for _, cause := range r.told().causes {
			if wire.KindOf(cause) != wire.NotConnected {
				t.Errorf("told %v", cause)
			}
		}
		w.serve(third, grpctest.Script{})
		if s := r.connected(t, 1); s.Server != third {
			t.Errorf("connected to %s", s.Server)
		}
	})
}

// A change of the list ends the pause between rounds, and a server that is no longer in
// it is left, for another one first.
func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(first, grpctest.Script{})
		w.serve(second, grpctest.Script{})
		list := entries{third}
		r := start(t, in(&list), on(w), func(c *Config) {
			c.Backoff = servers.Backoff{Min: time.Hour, Max: time.Hour}
		})
		synctest.Wait()
		list.set(t, r.list, first)
		if s := r.connected(t, 1); s.Server != first {
			t.Errorf("connected to %s", s.Server)
		}
		time.Sleep(2 * time.Hour) // it is no revolving door
		causes := len(r.told().causes)
		list.set(t, r.list, second)
		if s := r.connected(t, 2); s.Server != second {
			t.Errorf("connected to %s", s.Server)
		}
		if len(r.told().causes) != causes {
			t.Errorf("there was a gap: %v", r.told().causes[causes:])
		}
	})
}
