package grpcapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// gone checks that the server closed a connection, with what it registered, and
// that the history says why.
func (r *rig) gone(c *connection, why string) {
	r.t.Helper()
	status := c.status()
	if status == nil || status.Code != transport.Unavailable || !strings.Contains(status.Message, why) {
		r.t.Fatalf("closed with %+v, want UNAVAILABLE because of %q", status, why)
	}
	if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != grpcv2.CodeUnregistered {
		r.t.Errorf("a call after that: %v", got)
	}
	_, last := r.history.count(registry.InstanceRemoved)
	if last.Cause.Kind != registry.CauseDisconnect || !strings.Contains(last.Cause.Detail, why) || last.Cause.From != c.peer.Addr() {
		r.t.Errorf("cause %v, want %q", last.Cause, why)
	}
	if got := r.listed(); got != "" {
		r.t.Errorf("still listed: %s", got)
	}
}

func TestSilentClientIsProbed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		time.Sleep(19 * time.Second)
		s.none("19 s of silence")
		time.Sleep(2 * time.Second)
		probe := s.one(grpcv2.ClientDetection)
		time.Sleep(3 * time.Second)
		s.say("ClientDetectionResponse", `{"resultCode":200,"success":false,"requestId":"`+probe.body["requestId"].(string)+`"}`)
		time.Sleep(19 * time.Second)
		s.none("19 s after the sign of life")
		if c.status() != nil {
			t.Fatalf("closed: %+v", c.status())
		}
		time.Sleep(2 * time.Second)
		s.one(grpcv2.ClientDetection)
		time.Sleep(2 * time.Second)
		c.call(grpcv2.HealthCheck, "{}") // any sign of life will do
		time.Sleep(3 * time.Second)
		if c.status() != nil {
			t.Fatalf("closed after a call: %+v", c.status())
		}
	})
}

func TestSilentClientIsEvicted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		time.Sleep(21 * time.Second)
		s.one(grpcv2.ClientDetection)
		time.Sleep(3 * time.Second)
		if r.listed() != "1" {
			t.Fatal("gone too early")
		}
		time.Sleep(3 * time.Second)
		r.gone(c, "no answer to a probe for 5s")
	})
}

// A client that reads nothing cannot be probed, and goes all the same.
func TestStuckClientIsEvicted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		s.stick(true)
		time.Sleep(27 * time.Second)
		r.gone(c, "no answer to a probe")
	})
}

// One that makes calls but leaves its stream unread goes after five minutes.
func TestUnreadStreamIsEvicted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		c.subscribe(true, "")
		s.stick(true)
		for range 59 {
			time.Sleep(5 * time.Second)
			c.call(grpcv2.HealthCheck, "{}")
		}
		if c.status() != nil {
			t.Fatalf("closed after 295 s: %+v", c.status())
		}
		time.Sleep(8 * time.Second)
		r.gone(c, "reads nothing")
	})
}

func TestHealthChecksKeepAClient(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		for range 100 {
			time.Sleep(5 * time.Second)
			if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 {
				t.Fatalf("got %v", got)
			}
		}
		s.none("all is well")
	})
}

// The end of the stream is no disconnect, but a silent client without one cannot
// be probed.
func TestStreamEnds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		s.end()
		time.Sleep(10 * time.Second)
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 || r.listed() != "1" {
			t.Fatalf("got %v, listed %q", got, r.listed())
		}
		time.Sleep(18 * time.Second)
		if c.status() != nil {
			t.Fatalf("closed too early: %+v", c.status())
		}
		time.Sleep(4 * time.Second)
		r.gone(c, "without a stream")
	})
}

// A second stream takes over when the first ends.
func TestSecondStream(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, first := r.join()
		second := c.open()
		second.say(grpcv2.ConnectionSetup, `{"clientVersion":"other","abilityTable":{}}`)
		second.one(grpcv2.SetupAck)
		c.subscribe(true, "")
		time.Sleep(time.Second)
		first.ack(first.one(grpcv2.NotifySubscriber))
		second.none("the first stream is there")
		first.end()
		c.register(1)
		time.Sleep(time.Second)
		second.ack(second.one(grpcv2.NotifySubscriber))
		if got, _ := r.Connection(c.id()); got.Version != "Nacos-Go-Client:v2.3.5" {
			t.Errorf("the second setup changed the version to %q", got.Version)
		}
		third := c.open() // has not said who it is
		second.end()
		c.register(2)
		time.Sleep(time.Second)
		third.none("before its setup")
		third.say(grpcv2.ConnectionSetup, namingSetup)
		if got := third.one(grpcv2.NotifySubscriber); got.ports() != "2" {
			t.Errorf("the push that waited: %v", got)
		}
	})
}

func TestUnregisteredConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := r.connect()
		busy := r.connect()
		for range 70 {
			time.Sleep(time.Second)
			busy.call(grpcv2.ServerCheck, "")
		}
		if status := c.status(); status == nil || !strings.Contains(status.Message, "not registered") {
			t.Errorf("one that does nothing: %+v", status)
		}
		if busy.status() != nil {
			t.Errorf("one that makes calls: %+v", busy.status())
		}
		late := c.open()
		late.say(grpcv2.ConnectionSetup, `{"labels":{"module":"naming"},"abilityTable":{}}`)
		if got := c.register(1); got.code() != grpcv2.CodeUnregistered {
			t.Errorf("after its end it can register: %v", got)
		}
	})
}

// TestStrayClient has a client whose channel has dialled anew without its knowledge,
// as that of Python 2.0 does: it takes code 301 for the word of a server that
// starts, and asks again every 5 s.
func TestStrayClient(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := r.connect()
		for range 3 {
			if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != grpcv2.CodeUnregistered {
				t.Errorf("at first: %v", got)
			}
		}
		time.Sleep(5 * time.Second)
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != grpcv2.CodeDisconnected {
			t.Errorf("when it has not understood: %v", got)
		}
		if got := c.register(1); got.code() != grpcv2.CodeUnregistered {
			t.Errorf("another call: %v", got)
		}
		c.open().say(grpcv2.ConnectionSetup, namingSetup)
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 {
			t.Errorf("registered: %v", got)
		}
	})
}

func TestClosedConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		other, seen := r.join()
		other.subscribe(true, "")
		c.register(1)
		time.Sleep(time.Second)
		seen.take()
		c.session.Closed(false)
		time.Sleep(50 * time.Millisecond)
		if got := seen.one(grpcv2.NotifySubscriber); got.ports() != "" {
			t.Errorf("the others see %v", got)
		}
		_, last := r.history.count(registry.InstanceRemoved)
		if got := last.Cause.String(); got != "connection closed grpc from 10.0.0.7: by the client" {
			t.Errorf("cause %q", got)
		}
		if _, known := r.Connection(c.id()); known || len(r.Connections()) != 1 {
			t.Error("it is still listed as a client")
		}
		if got := c.register(1); got.code() != grpcv2.CodeUnregistered {
			t.Errorf("a late call: %v", got)
		}
	})
}

// What a client registered stays when it is the server that goes.
func TestStoppingKeepsInstances(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		c.register(1)
		c.session.Closed(true)
		if r.listed() != "1" {
			t.Error("the instance went with the server")
		}
	})
}

// A client that comes back before its old connection is known to be dead keeps its
// instance.
func TestReconnectOverlaps(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		before, _ := r.join()
		before.register(1)
		after, _ := r.join()
		after.register(1)
		before.session.Closed(false)
		if r.listed() != "1" {
			t.Error("the old connection took the instance with it")
		}
		after.instance(grpcv2.Deregister, `{"ip":"10.1.1.1","port":1}`)
		if r.listed() != "" {
			t.Error("the instance outlives its client")
		}
	})
}

func TestSetup(t *testing.T) {
	for name, tt := range map[string]struct{ setup, abilities string }{
		"without a table": {`{"clientVersion":"v","labels":{"module":"naming"}}`, ""},
		"empty table":     {`{"labels":{"module":"naming"},"abilityTable":{}}`, `{"supportPersistentInstanceByGrpc":true}`},
		"3.x":             {`{"labels":{"module":"naming"},"abilityTable":{"fuzzyWatch":true}}`, `{"supportPersistentInstanceByGrpc":true,"fuzzyWatch":true}`},
		"3.x, Python":     {`{"labels":{"module":"naming"},"abilityTable":{"mcp":true,"agent":true}}`, `{"supportPersistentInstanceByGrpc":true,"fuzzyWatch":true}`},
		"3.x, config":     {`{"labels":{"module":"config"},"abilityTable":{"fuzzyWatch":true}}`, `{"supportPersistentInstanceByGrpc":true}`},
		"no labels":       {`{"abilityTable":{}}`, `{"supportPersistentInstanceByGrpc":true}`},
		"nothing":         {`{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				c := r.connect()
				s := c.open()
				s.say(grpcv2.ConnectionSetup, tt.setup)
				got := s.take()
				switch {
				case tt.abilities == "" && len(got) > 0:
					t.Errorf("got %v", got)
				case tt.abilities != "" && (len(got) != 1 || !strings.Contains(got[0].text, `"abilityTable":`+tt.abilities)):
					t.Errorf("got %v, want %s", got, tt.abilities)
				}
				if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 {
					t.Errorf("not registered: %v", got)
				}
			})
		})
	}
}

func TestFramesThatAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := r.connect()
		s := c.open()
		for kind, body := range map[string]string{
			"NotifySubscriberResponse": `{"resultCode":200,"requestId":"1"}`, "NoSuchThing": "{x", "": "", grpcv2.InstanceType: "{}",
			grpcv2.ConnectionSetup: "{nope", "X" + grpcv2.ConnectionSetup: namingSetup,
		} {
			s.say(kind, body)
		}
		s.none("junk")
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != grpcv2.CodeUnregistered {
			t.Errorf("got %v", got)
		}
		s.say(grpcv2.ConnectionSetup, namingSetup)
		s.say("NotifySubscriberResponse", `{x`)
		s.say("NotifySubscriberResponse", `{"resultCode":200,"requestId":"no number"}`)
		s.say("NotifySubscriberResponse", `{"resultCode":200,"requestId":"12345"}`)
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 {
			t.Errorf("got %v", got)
		}
	})
}

func TestServerThatIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		r.notReady = errors.New("stopping")
		for _, kind := range []string{grpcv2.ServerCheck, grpcv2.HealthCheck, "Nothing"} {
			if got := c.call(kind, "{}"); got.code() != grpcv2.CodeStarting {
				t.Errorf("%s: %v", kind, got)
			}
		}
		late := r.connect()
		late.open().say(grpcv2.ConnectionSetup, namingSetup)
		if late.status() == nil {
			t.Error("a client is taken while the server is not ready")
		}
	})
}

func TestConnections(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		r.connect() // is no client before it says so
		time.Sleep(3 * time.Second)
		c.register(1)
		c.subscribe(true, "")
		got := r.Connections()
		if len(got) != 1 {
			t.Fatalf("got %+v", got)
		}
		g := got[0]
		if g.ID != c.id() || g.Peer != c.peer || g.IP != "192.168.0.7" || g.App != "shop" || g.Module != "naming" ||
			g.Labels["source"] != "sdk" || g.LastActive-g.Since != 3000 || g.Untold != 0 {
			t.Errorf("got %+v", g)
		}
		if !strings.HasPrefix(string(g.ID), "94") || !strings.HasSuffix(string(g.ID), "_10.0.0.7_50001") {
			t.Errorf("ID %s", g.ID) // the bubble's clock starts in the year 2000: 946684800000
		}
		s.stick(true)
		c.register(2)
		time.Sleep(2 * time.Second)
		if g, _ := r.Connection(c.id()); g.Untold != 1 || g.Lag < time.Second || g.Lag > 2*time.Second {
			t.Errorf("untold %d, lag %v", g.Untold, g.Lag)
		}
		sub := r.store.FindSubscribers(func(registry.ServiceKey) bool { return true })[0]
		since, waiting := r.Waiting(sub)
		if lag := r.core.Now().Lease - since.Lease; !waiting || lag < time.Second || lag > 2*time.Second {
			t.Errorf("waiting %v for %v", waiting, lag)
		}
		if got := r.Agents(); len(got) != 1 || got[g.Version] != 1 {
			t.Errorf("agents %v, want one %s", got, g.Version)
		}
		c.session.Closed(false)
		if _, waiting := r.Waiting(sub); waiting || len(r.Agents()) != 0 {
			t.Errorf("after the end: waiting %v, agents %v", waiting, r.Agents())
		}
	})
}

// Labels cost memory as long as the connection lasts, so the first of them are kept
// that fit. Those that mean something to the server count in any case.
func TestLabelsAreBounded(t *testing.T) {
	some := func(n, size int) map[string]string {
		labels := map[string]string{"module": "naming", "AppName": "shop"}
		for i := range n {
			labels[fmt.Sprintf("l%03d", i)] = strings.Repeat("v", size)
		}
		return labels
	}
	for _, tt := range []struct {
		name          string
		labels        map[string]string
		kept, dropped int
	}{
		{"none", nil, 0, 0},
		{"a few", some(10, 100), 12, 0},
		{"too many", some(100, 1), maxLabels, 102 - maxLabels},
		{"too long together", some(20, 250), 16 + 2, 4}, // 16 of 254 bytes each, and the two short ones
		{"one too long", some(1, 100_000), 3, 0},        // it is cut
	} {
		who, dropped := identityOf(&grpcv2.Setup{Labels: tt.labels}, "10.0.0.7")
		if len(who.labels) != tt.kept || dropped != tt.dropped {
			t.Errorf("%s: kept %d and dropped %d, want %d and %d", tt.name, len(who.labels), dropped, tt.kept, tt.dropped)
		}
		if tt.labels != nil && (!who.naming || who.app != "shop") {
			t.Errorf("%s: naming %v, application %q", tt.name, who.naming, who.app)
		}
	}
}

func TestReset(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		done := make(chan bool)
		go func() { done <- r.Reset(t.Context(), c.id(), "10.0.0.2:8848") }()
		reset := s.one(grpcv2.ConnectReset)
		if !strings.Contains(reset.text, `"serverIp":"10.0.0.2","serverPort":"8848"`) {
			t.Errorf("got %v", reset)
		}
		s.say("ConnectResetResponse", `{"resultCode":200,"requestId":"`+reset.body["requestId"].(string)+`"}`)
		if !<-done {
			t.Error("no such client")
		}
		if c.status() != nil {
			t.Error("the server closed the connection")
		}
		start := time.Now()
		if !r.Reset(t.Context(), c.id(), "nonsense") || time.Since(start) != 3*time.Second {
			t.Errorf("without an answer it took %v", time.Since(start))
		}
		if got := s.one(grpcv2.ConnectReset); strings.Contains(got.text, "serverIp") {
			t.Errorf("got %v", got)
		}
		if r.Reset(t.Context(), "nobody", "") {
			t.Error("nobody was reset")
		}
	})
}

func TestShed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var streams []*stream
		for range 5 {
			_, s := r.join()
			streams = append(streams, s)
			time.Sleep(time.Millisecond)
		}
		r.Shed(0, "")
		r.Shed(2, "10.0.0.2:8848")
		// Nobody answers, and none waits for another's three seconds.
		time.Sleep(time.Second)
		for n, s := range streams {
			want := 0
			if n >= 2 {
				want = 1
			}
			if got := s.take(); len(got) != want {
				t.Errorf("client %d: got %v, want %d resets", n, got, want)
			}
		}
	})
}
