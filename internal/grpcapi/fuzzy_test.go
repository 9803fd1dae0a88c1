package grpcapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"public>>g>>orders": "orders", ">>g>>orders": "orders", "public>>g>>*": "orders order-items items", "public>>g>>order*": "orders order-items",
		"public>>g>>*items": "order-items items", "public>>g>>*er*": "orders order-items", "public>>*>>*s": "orders order-items items",
		"public>>g*>>items": "items", "public>>G>>*": "", "other>>*>>*": "", "public>>g": "", "": "", "public>>g>>x>>y": "", "public>>>>*": "",
		"public>>**>>**": "orders order-items items",
	} {
		p := parsePattern(text)
		var got []string
		for _, name := range []string{"orders", "order-items", "items"} {
			if p.matches(registry.ServiceKey{Namespace: "public", Group: "g", Name: name}) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q matches %v, want %s", text, got, want)
		}
	}
}

// newer connects a client of 3.x.
func (r *rig) newer() (*connection, *stream) {
	c := r.connect()
	s := c.open()
	s.say(grpcv2.ConnectionSetup, `{"clientVersion":"Nacos-Java-Client:v3.0.3","labels":{"module":"naming"},"abilityTable":{"fuzzyWatch":true}}`)
	s.one(grpcv2.SetupAck)
	return c, s
}

func (c *connection) watchFuzzily(pattern, kind string, initializing bool, known ...string) answer {
	list := "[]"
	if len(known) > 0 {
		list = `["` + strings.Join(known, `","`) + `"]`
	}
	return c.call(grpcv2.FuzzyWatch, fmt.Sprintf(`{"initializing":%v,"groupKeyPattern":%q,"watchType":%q,"receivedGroupKeys":%s}`, initializing, pattern, kind, list))
}

// inhabit makes a service that has an instance, or has none any more.
func (c *connection) inhabit(service string, yes bool) {
	c.r.t.Helper()
	op := grpcv2.Deregister
	if yes {
		op = grpcv2.Register
	}
	got := c.call(grpcv2.InstanceType, fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"g","type":%q,"instance":{"ip":"10.1.1.1","port":1}}`, service, op))
	if got.code() != 0 {
		c.r.t.Fatal(got)
	}
}

// told describes a fuzzy watch's request: what it is, and the services in it.
func (a answer) told() string {
	if a.kind == grpcv2.FuzzyWatchChange {
		return fmt.Sprint(a.body["changedType"], " ", a.body["serviceKey"])
	}
	var services []string
	for _, c := range a.body["contexts"].([]any) {
		services = append(services, fmt.Sprint(c.(map[string]any)["serviceKey"]))
	}
	return fmt.Sprint(a.body["syncType"], " ", a.body["currentBatch"], "/", a.body["totalBatch"], " ", strings.Join(services, " "))
}

// tell returns what came, and acknowledges it, until nothing more comes.
func (s *stream) tell() (list []string) {
	for got := s.take(); len(got) > 0; got = s.take() {
		for _, a := range got {
			list = append(list, a.told())
			s.say("NamingFuzzyWatchChangeNotifyResponse", fmt.Sprintf(`{"resultCode":200,"requestId":%q}`, a.body["requestId"]))
		}
	}
	return list
}

func TestFuzzyWatch(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		provider, _ := r.join()
		for n := range 12 {
			provider.inhabit(fmt.Sprintf("s%02d", n), true)
		}
		c, s := r.newer()
		c.holdBack = true
		if got := c.watchFuzzily("public>>g>>s*", grpcv2.Watch, true); got.kind != grpcv2.FuzzyWatchResponse || got.code() != 0 {
			t.Fatalf("got %v", got)
		}
		s.none("the answer is not written")
		c.write()
		want := []string{
			"FUZZY_WATCH_INIT_NOTIFY 1/2 public@@g@@s00 public@@g@@s01 public@@g@@s02 public@@g@@s03 public@@g@@s04 public@@g@@s05 public@@g@@s06 public@@g@@s07 public@@g@@s08 public@@g@@s09",
			"FUZZY_WATCH_INIT_NOTIFY 2/2 public@@g@@s10 public@@g@@s11",
			"FINISH_FUZZY_WATCH_INIT_NOTIFY 1/1 ",
		}
		if got := s.tell(); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		provider.inhabit("s99", true)
		provider.inhabit("t99", true)
		provider.inhabit("s99", true) // once more is no news
		if got := s.tell(); !slices.Equal(got, []string{"ADD_SERVICE public@@g@@s99"}) {
			t.Errorf("got %q", got)
		}
		provider.session.Closed(false)
		got := s.tell()
		slices.Sort(got)
		if len(got) != 13 || got[0] != "DELETE_SERVICE public@@g@@s00" || got[12] != "DELETE_SERVICE public@@g@@s99" {
			t.Errorf("got %q", got)
		}
		c.watchFuzzily("public>>g>>s*", grpcv2.CancelWatch, false)
		other, _ := r.join()
		other.inhabit("s00", true)
		if got := s.tell(); len(got) > 0 {
			t.Errorf("after the end of the watch: %q", got)
		}
		if n := r.fuzzies.active.Load(); n != 0 {
			t.Errorf("%d patterns are left", n)
		}
	})
}

// A client that comes back says what it knows, and is told what it missed.
func TestFuzzyWatchAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		provider, _ := r.join()
		provider.inhabit("a", true)
		provider.inhabit("b", true)
		c, s := r.newer()
		c.watchFuzzily("public>>g>>*", grpcv2.Watch, false, "public@@g@@a", "public@@g@@gone")
		if got := s.tell(); !slices.Equal(got, []string{"FUZZY_WATCH_DIFF_SYNC_NOTIFY 1/1 public@@g@@b", "DELETE_SERVICE public@@g@@gone"}) {
			t.Errorf("got %q", got)
		}
		c.watchFuzzily("public>>g>>*", grpcv2.Watch, false, "public@@g@@a", "public@@g@@b")
		if got := s.tell(); len(got) > 0 {
			t.Errorf("it knew all: %q", got)
		}
		provider.inhabit("c", true)
		if got := s.tell(); !slices.Equal(got, []string{"ADD_SERVICE public@@g@@c"}) {
			t.Errorf("got %q", got)
		}
		c.session.Closed(false)
		if n := r.fuzzies.active.Load(); n != 0 {
			t.Errorf("%d patterns are left", n)
		}
	})
}

func TestFuzzyWatchIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		provider, _ := r.join()
		provider.inhabit("a", true)
		c, s := r.newer()
		c.watchFuzzily("public>>g>>*", grpcv2.Watch, true)
		first := s.one(grpcv2.FuzzyWatchSync)
		provider.inhabit("b", true)
		time.Sleep(4 * time.Second)
		s.none("four seconds later")
		time.Sleep(2 * time.Second)
		again := s.one(grpcv2.FuzzyWatchSync)
		if again.told() != first.told() || again.body["requestId"] == first.body["requestId"] {
			t.Errorf("got %v after %v", again, first)
		}
		s.say("NamingFuzzyWatchChangeNotifyResponse", fmt.Sprintf(`{"resultCode":500,"requestId":%q}`, again.body["requestId"]))
		s.none("just refused")
		time.Sleep(2 * time.Second)
		if got := s.tell(); !slices.Equal(got, []string{first.told(), "FINISH_FUZZY_WATCH_INIT_NOTIFY 1/1 ", "ADD_SERVICE public@@g@@b"}) {
			t.Errorf("got %q", got)
		}
		provider.inhabit("b", false)
		s.one(grpcv2.FuzzyWatchChange)
		provider.inhabit("b", true) // while the client is being told that it is gone
		time.Sleep(6 * time.Second)
		if got := s.tell(); len(got) > 0 {
			t.Errorf("it is there again as the client last knew: %q", got)
		}
	})
}

func TestFuzzyWatchLimits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		provider, _ := r.join()
		for n := range maxMatches + 5 {
			provider.inhabit(fmt.Sprint("s", n), true)
		}
		c, s := r.newer()
		if got := c.watchFuzzily("public>>g>>*", grpcv2.Watch, true); got.code() != grpcv2.CodeMatchLimit || got.kind != grpcv2.FuzzyWatchResponse {
			t.Errorf("too many services: %v", got)
		}
		if got := s.tell(); len(got) != maxMatches/fuzzyBatch+1 {
			t.Errorf("%d batches, want those that are allowed and the end", len(got))
		}
		for n := range maxPatterns - 1 {
			if got := c.watchFuzzily(fmt.Sprint("public>>h>>", n), grpcv2.Watch, true); got.code() != 0 {
				t.Fatalf("pattern %d: %v", n, got)
			}
		}
		if got := c.watchFuzzily("public>>h>>more", grpcv2.Watch, true); got.code() != grpcv2.CodePatternLimit {
			t.Errorf("too many patterns: %v", got)
		}
		other, _ := r.newer()
		if got := other.watchFuzzily("public>>h>>1", grpcv2.Watch, true); got.code() != 0 {
			t.Errorf("a pattern that is watched already: %v", got)
		}
		if got := c.watchFuzzily("x", "NONSENSE", true); got.kind != grpcv2.ErrorResponse || got.code() != grpcv2.CodeInvalid {
			t.Errorf("no such watch type: %v", got)
		}
		if got := c.watchFuzzily(strings.Repeat("x", maxPattern+1), grpcv2.Watch, true); got.code() != grpcv2.CodeInvalid {
			t.Errorf("a long pattern: %v", got)
		}
	})
}

// A text that is no pattern is told that nothing matches.
func TestFuzzyWatchOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.newer()
		if got := c.watchFuzzily("nonsense", grpcv2.Watch, true); got.code() != 0 {
			t.Errorf("got %v", got)
		}
		if got := s.tell(); !slices.Equal(got, []string{"FINISH_FUZZY_WATCH_INIT_NOTIFY 1/1 "}) {
			t.Errorf("got %q", got)
		}
	})
}
