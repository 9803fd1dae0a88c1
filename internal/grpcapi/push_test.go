package grpcapi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// settled lets half a second and what follows from it pass: the welcome of a new
// subscription, or a merge window.
func settled() { time.Sleep(600 * time.Millisecond) }

func TestSubscription(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		other, _ := r.join()
		got := c.subscribe(true, "")
		if got.kind != grpcv2.SubscribeServiceResponse || got.ports() != "" || got.body["message"] != "success" {
			t.Fatalf("got %v", got)
		}
		if r.store.View(orders) != nil {
			t.Error("the subscription made the service")
		}
		s.none("before the welcome")
		time.Sleep(500 * time.Millisecond)
		s.ack(s.one(grpcv2.NotifySubscriber))
		other.register(1)
		time.Sleep(10 * time.Millisecond) // at once
		push := s.one(grpcv2.NotifySubscriber)
		if push.ports() != "1" {
			t.Errorf("got %v", push)
		}
		s.ack(push)
		time.Sleep(time.Minute - 35*time.Second)
		for _, a := range s.take() {
			if a.kind != grpcv2.ClientDetection {
				t.Errorf("after the acknowledgement: %v", a)
			}
		}
		if got := r.observed.outcomes(); got != "[acked:2]" {
			t.Errorf("outcomes %s", got)
		}
		n, last := r.history.count(registry.PushAcknowledged)
		if n != 1 || last.Subscriber.Client != c.id() || last.Revision != r.store.View(orders).Revision {
			t.Errorf("%d acknowledgements in the history, the last %+v", n, last)
		}
	})
}

func TestSubscribeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		other, _ := r.join()
		other.call(grpcv2.BatchInstance, `{"namespace":"public","serviceName":"orders","groupName":"g","type":"batchRegisterInstance","instances":[
			{"ip":"10.1.1.1","port":1,"clusterName":"a"},{"ip":"10.1.1.1","port":2,"clusterName":"b"}]}`)
		c.subscribe(true, "")
		settled()
		s.ack(s.one(grpcv2.NotifySubscriber))
		if got := c.subscribe(true, ""); got.ports() != "1 2" {
			t.Errorf("the same again: %v", got)
		}
		if got := c.subscribe(true, "b"); got.ports() != "2" || !strings.Contains(got.text, `"clusters":"b"`) {
			t.Errorf("other clusters: %v", got)
		}
		settled()
		s.none("a known subscription has no welcome")
		if got := r.store.Subscribers(orders); len(got) != 1 || got[0].Clusters != "b" || got[0].App != "shop" {
			t.Errorf("subscribers %+v", got)
		}
		other.session.Closed(false)
		time.Sleep(10 * time.Millisecond)
		if got := s.one(grpcv2.NotifySubscriber); got.ports() != "" || !strings.Contains(got.text, `"clusters":"b"`) {
			t.Errorf("got %v", got)
		}
	})
}

func TestUnsubscribe(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		if got := c.subscribe(false, ""); got.code() != 0 {
			t.Errorf("without a subscription: %v", got)
		}
		c.subscribe(true, "")
		s.stick(true)
		c.register(1) // waits for the client
		c.subscribe(false, "")
		s.stick(false)
		settled()
		s.none("after the subscription")
		if n := len(r.store.Subscribers(orders)); n != 0 {
			t.Errorf("%d subscribers", n)
		}
		c.subscribe(true, "")
		c.subscribe(true, "")
		settled()
		if got := s.one(grpcv2.NotifySubscriber); got.ports() != "1" {
			t.Errorf("subscribed anew: %v", got)
		}
		c.session.Closed(false)
		if n := len(r.store.Subscribers(orders)); n != 0 {
			t.Errorf("%d subscribers after the connection", n)
		}
	})
}

// A push has one end, also when the subscription or the connection ends first, or
// a state follows that is not sent.
func TestPushesEndOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.subscribe(true, "")
		settled()
		s.one(grpcv2.NotifySubscriber)
		c.subscribe(false, "")
		if got := r.observed.outcomes(); got != "[gone:1]" {
			t.Errorf("after the subscription: %s", got)
		}
		c.subscribe(true, "")
		settled()
		s.one(grpcv2.NotifySubscriber)
		other, _ := r.join()
		other.call(grpcv2.BatchInstance, tooLarge(otherMessage))
		settled()
		if got := r.observed.outcomes(); got != "[gone:1 superseded:1 too_large:1]" {
			t.Errorf("after a state that is too large: %s", got)
		}
		other.session.Closed(false)
		settled()
		if len(s.take()) == 0 { // one or more: the instances go in batches
			t.Error("nothing was pushed when the instances went")
		}
		c.session.Closed(false)
		if n := r.observed.balance(); n != 0 {
			t.Errorf("%d pushes have no end: %s", n, r.observed.outcomes())
		}
	})
}

func TestPushIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		c.subscribe(true, "")
		settled()
		start := time.Now()
		first := s.one(grpcv2.NotifySubscriber)
		var times []int
		ids := map[any]bool{first.body["requestId"]: true}
		for range 100 {
			time.Sleep(time.Second)
			c.call(grpcv2.HealthCheck, "{}")
			for _, again := range s.take() {
				times = append(times, int(time.Since(start).Seconds()))
				if ids[again.body["requestId"]] || again.ports() != first.ports() {
					t.Errorf("got %v", again)
				}
				ids[again.body["requestId"]] = true
				s.say("NotifySubscriberResponse", `{"resultCode":200,"requestId":"`+first.body["requestId"].(string)+`"}`) // late
			}
		}
		// 5 s each, and then 1, 2, 4 … 30 s, both looked at each second.
		if got := fmt.Sprint(times); got != "[7 14 23 36 57 92]" {
			t.Errorf("repeated after %s seconds", got)
		}
		if n, last := r.history.count(registry.PushFailed); n != 1 || last.Detail == "" {
			t.Errorf("%d failures in the history, %+v", n, last)
		}
	})
}

func TestPushIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.subscribe(true, "")
		settled()
		s.ackAs(s.one(grpcv2.NotifySubscriber), 500)
		time.Sleep(900 * time.Millisecond)
		s.none("less than a second after the refusal")
		time.Sleep(200 * time.Millisecond)
		s.ack(s.one(grpcv2.NotifySubscriber))
		time.Sleep(10 * time.Second)
		s.none("after the acknowledgement")
		if got := r.observed.outcomes(); got != "[acked:1 refused:1]" {
			t.Errorf("outcomes %s", got)
		}
	})
}

// A newer state takes the place of one that was not acknowledged, and of one that
// was not even sent.
func TestNewestStateIsPushed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		other, seen := r.join()
		for _, x := range []*connection{c, other} {
			x.subscribe(true, "")
		}
		settled()
		s.take() // is not acknowledged
		seen.ack(seen.one(grpcv2.NotifySubscriber))
		s.stick(true)
		for port := 1; port <= 5; port++ {
			c.register(port)
			settled()
			push := seen.one(grpcv2.NotifySubscriber) // is not held up
			if push.ports() != fmt.Sprint(port) {
				t.Errorf("the other sees %v", push)
			}
			seen.ack(push)
		}
		s.stick(false)
		push := s.one(grpcv2.NotifySubscriber)
		if push.ports() != "5" {
			t.Errorf("got %v", push)
		}
		s.ack(push)
		time.Sleep(10 * time.Second)
		s.none("after the newest state")
		if got := r.observed.outcomes(); got != "[acked:7 superseded:1]" {
			t.Errorf("outcomes %s", got)
		}
	})
}

// No push of a service overtakes the answer to the client's own call about it.
func TestAnswersComeFirst(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		other, _ := r.join()
		c.holdBack = true
		c.subscribe(true, "")
		other.register(1)
		c.call(grpcv2.SubscribeService, `{"serviceName":"free","groupName":"g","subscribe":true}`) // another service
		settled()
		s.none("its answer is not written")
		c.write()
		got := s.take()
		if len(got) != 2 {
			t.Fatalf("got %v, want both pushes", got)
		}
		for _, push := range got {
			s.ack(push)
		}
		c.holdBack = true
		c.register(2)
		settled()
		s.none("the answer to its registration is not written")
		other.call(grpcv2.InstanceType, `{"namespace":"public","serviceName":"free","groupName":"g","type":"registerInstance","instance":{"ip":"10.1.1.1","port":9}}`)
		time.Sleep(10 * time.Millisecond)
		if free := s.one(grpcv2.NotifySubscriber); free.ports() != "9" {
			t.Errorf("got %v", free)
		}
		c.write()
		if push := s.one(grpcv2.NotifySubscriber); push.ports() != "1 2" {
			t.Errorf("got %v", push)
		}
	})
}

// Of a service that comes and goes the states are numbered upwards, its absence
// included: Go and Python ignore what is not newer.
func TestStatesAreNumbered(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		other, _ := r.join()
		var last float64
		check := func(what string, a answer) {
			t.Helper()
			info := a.body["serviceInfo"].(map[string]any)
			if now := info["lastRefTime"].(float64); now <= last {
				t.Errorf("%s: %v after %v", what, now, last)
			} else {
				last = now
			}
		}
		check("absent", c.subscribe(true, ""))
		other.register(1)
		time.Sleep(10 * time.Millisecond)
		push := s.one(grpcv2.NotifySubscriber)
		check("registered in the same millisecond", push)
		s.ack(push)
		settled()
		s.ack(s.one(grpcv2.NotifySubscriber)) // the welcome says it once more
		if err := r.core.DeleteService(context.Background(), registry.Cause{}, orders, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		push = s.one(grpcv2.NotifySubscriber)
		check("gone", push)
		if push.ports() != "" || !strings.Contains(push.text, `"name":"orders","groupName":"g"`) {
			t.Errorf("got %v", push)
		}
		s.ack(push)
		other.register(1)
		settled()
		check("back", s.one(grpcv2.NotifySubscriber))
	})
}

// What a push tells equals what a look-up answers, in the form that the client
// reads.
func TestPushesAreLookups(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for _, tt := range []struct{ setup, member string }{
			{namingSetup, `"allIPs":false`},
			{`{"clientVersion":"Nacos-Java-Client:v3.0.3","labels":{"module":"naming"},"abilityTable":{"fuzzyWatch":true}}`, `"allIps":false`},
		} {
			c := r.connect()
			s := c.open()
			s.say(grpcv2.ConnectionSetup, tt.setup)
			s.take()
			c.instance(grpcv2.Register, `{"ip":"10.1.1.1","port":1,"metadata":{"a":"b"},"weight":2.5,"healthy":false}`)
			asked := c.subscribe(true, "DEFAULT,none")
			settled()
			push := s.one(grpcv2.NotifySubscriber)
			_, want, _ := strings.Cut(asked.text, `"serviceInfo":`)
			if _, got, _ := strings.Cut(push.text, `"serviceInfo":`); got != want || !strings.Contains(got, tt.member) || !strings.Contains(got, `"weight":2.5,"healthy":false`) {
				t.Errorf("pushed   %s\nanswered %s", got, want)
			}
			c.session.Closed(false)
		}
	})
}

func TestSubscriptionLimit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		end := c.session.(*client)
		end.mu.Lock()
		end.watches = map[registry.ServiceKey]*watch{}
		for n := range maxWatches {
			end.watches[registry.ServiceKey{Name: fmt.Sprint(n)}] = &watch{}
		}
		end.mu.Unlock()
		if got := c.subscribe(true, ""); got.code() != grpcv2.CodeServerError || !strings.Contains(got.text, "65536") {
			t.Errorf("got %v", got)
		}
	})
}

// tooLarge is a request to register a service that is larger than so many bytes.
func tooLarge(size int) string {
	var list []string
	for n := range size/60_000 + 1 {
		list = append(list, fmt.Sprintf(`{"ip":"10.1.1.1","port":%d,"metadata":{"a":%q}}`, n+1, strings.Repeat("x", 60_000)))
	}
	return inOrders(`,"type":"batchRegisterInstance","instances":[` + strings.Join(list, ",") + `]`)
}

// A service may be larger than a client takes. Then its calls are told so, nothing
// is pushed, and everything else goes on.
func TestTooLargeForTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := r.connect()
		s := c.open()
		s.say(grpcv2.ConnectionSetup, `{"clientVersion":"Nacos-Rust-Client:0.8","labels":{"module":"naming"}}`)
		provider, providers := r.join()
		provider.subscribe(true, "")
		c.subscribe(true, "")
		settled()
		s.ack(s.one(grpcv2.NotifySubscriber))
		providers.take()
		provider.call(grpcv2.BatchInstance, tooLarge(rustMessage))
		time.Sleep(3 * time.Second)
		for _, a := range s.take() {
			if a.kind == grpcv2.NotifySubscriber {
				t.Errorf("a push of %d bytes", len(a.text))
			}
		}
		if got := providers.take(); len(got) == 0 || len(strings.Fields(got[0].ports())) != 70 {
			t.Error("a client that takes more was told nothing")
		}
		if got := c.call(grpcv2.ServiceQuery, inOrders("")); got.code() != grpcv2.CodeServerError || !strings.Contains(got.text, "no more than 4194304") {
			t.Errorf("got %.200s", got)
		}
		c.call(grpcv2.SubscribeService, `{"serviceName":"other","groupName":"g","subscribe":true}`)
		provider.register(7)
		settled()
		if got := s.take(); len(got) != 2 {
			t.Errorf("%d pushes, want those of two services", len(got))
		}
		if n, last := r.history.count(registry.PushFailed); n == 0 || !strings.Contains(last.Detail, "larger") {
			t.Errorf("the history has %d failures, %v", n, last.Detail)
		}
	})
}
