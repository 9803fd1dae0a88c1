package grpcapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// inOrders is the JSON of a request about the service orders with more members.
func inOrders(members string) string {
	return `{"namespace":"public","serviceName":"orders","groupName":"g"` + members + `}`
}

// TestAnswers has a row for each answer that clients tell apart: the type, both
// codes and a part of the text.
func TestAnswers(t *testing.T) {
	const register = `,"type":"registerInstance","instance":`
	one := func(members string) string { return inOrders(register + `{"ip":"10.1.1.1","port":1` + members + `}`) }
	long := func(n int) string { return strings.Repeat("x", n) }
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		stranger := r.connect()
		config := r.connect()
		config.open().say(grpcv2.ConnectionSetup, `{"labels":{"module":"config"}}`)
		for _, tt := range []struct {
			name         string
			from         *connection
			kind, body   string
			answer       string // its type
			result, code int
			text         string
		}{
			{"members only", stranger, "ServerReloadRequest", "{}", grpcv2.ErrorResponse, 500, 502, " invoke ServerReloadRequest from sdk is forbidden"},
			{"server check", stranger, grpcv2.ServerCheck, "{broken", grpcv2.ServerCheckResponse, 200, 0, `"supportAbilityNegotiation":true`},
			{"unknown type", stranger, "NoSuchRequest", "{}", grpcv2.ErrorResponse, 500, 302, "RequestHandler Not Found"},
			{"no type", stranger, "", "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"an answer", c, grpcv2.HealthCheckResponse, "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"a setup", c, grpcv2.ConnectionSetup, "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"wrong letters", c, "instancerequest", "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"push acknowledgement", c, "PushAckRequest", "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"lock", c, "LockOperationRequest", "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"AI", c, "QueryMcpServerRequest", "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"fuzzy watch of an old client", c, grpcv2.FuzzyWatch, "{}", grpcv2.ErrorResponse, 500, 302, ""},
			{"before setup", stranger, grpcv2.InstanceType, "{broken", grpcv2.ErrorResponse, 500, 301, "Connection is unregistered."},
			{"health before setup", stranger, grpcv2.HealthCheck, "{}", grpcv2.ErrorResponse, 500, 301, ""},
			{"health", c, grpcv2.HealthCheck, `{"requestId":"7"}`, grpcv2.HealthCheckResponse, 200, 0, ""},
			{"broken", c, grpcv2.HealthCheck, "{broken", grpcv2.ErrorResponse, 500, 502, "errCode: 101, errMsg: Nacos deserialize failed.  "},
			{"empty", c, grpcv2.InstanceType, "", grpcv2.ErrorResponse, 500, 502, ""},
			{"null", c, grpcv2.InstanceType, "null", grpcv2.ErrorResponse, 500, 502, "Invalid request"},
			{"wrong shape", c, grpcv2.BatchInstance, `{"instances":{}}`, grpcv2.ErrorResponse, 500, 502, ""},

			{"register", c, grpcv2.InstanceType, one(""), grpcv2.InstanceResponse, 200, 0, `"type":"registerInstance"`},
			{"without a type", c, grpcv2.InstanceType, inOrders(`,"instance":{}`), grpcv2.ErrorResponse, 500, 500, "'type'"},
			{"another type", c, grpcv2.InstanceType, inOrders(`,"type":"zzz"`), grpcv2.ErrorResponse, 400, 400, "Unsupported request type zzz"},
			{"without an instance", c, grpcv2.InstanceType, inOrders(`,"type":"registerInstance"`), grpcv2.ErrorResponse, 400, 400, "Instance can not be null."},
			{"without an address", c, grpcv2.InstanceType, inOrders(register + `{}`), grpcv2.ErrorResponse, 400, 400, "'ip'"},
			{"without a name", c, grpcv2.InstanceType, `{"namespace":"","groupName":"g","type":"registerInstance"}`, grpcv2.ErrorResponse, 500, 500, "Param 'serviceName' is illegal, serviceName is blank"},
			{"blank group", c, grpcv2.InstanceType, `{"namespace":"","serviceName":"s","groupName":" ","type":"registerInstance"}`, grpcv2.ErrorResponse, 500, 500, "Param 'groupName' is illegal, groupName is blank"},
			{"without a namespace", c, grpcv2.InstanceType, `{"serviceName":"s","groupName":"g","type":"registerInstance","instance":{"ip":"1"}}`, grpcv2.ErrorResponse, 500, 500, ""},
			{"grouped name", c, grpcv2.InstanceType, `{"namespace":"","serviceName":"g@@s","groupName":"g"}`, grpcv2.InstanceResponse, 500, 400, "Param check invalid:Param 'serviceName' is illegal, illegal characters should not appear in the param."},
			{"long name", c, grpcv2.ServiceQuery, `{"serviceName":"` + long(513) + `","groupName":"g"}`, grpcv2.QueryServiceResponse, 500, 400, "should not exceed 512"},
			{"long group", c, grpcv2.SubscribeService, `{"serviceName":"s","groupName":"` + long(129) + `"}`, grpcv2.SubscribeServiceResponse, 500, 400, "'group'"},
			{"bad namespace", c, grpcv2.ServiceList, `{"namespace":"n s","groupName":"g"}`, grpcv2.ServiceListResponse, 500, 400, `"count":0`},
			{"bad cluster", c, grpcv2.InstanceType, one(`,"clusterName":"a/b"`), grpcv2.InstanceResponse, 500, 400, "'cluster'"},
			{"odd cluster", c, grpcv2.InstanceType, one(`,"clusterName":"a_b"`), grpcv2.ErrorResponse, 400, 400, "should be characters with only 0-9a-zA-Z-. (current: a_b)"},
			{"bad port", c, grpcv2.InstanceType, inOrders(register + `{"ip":"1","port":70000}`), grpcv2.InstanceResponse, 500, 400, "'port'"},
			{"bad address", c, grpcv2.InstanceType, inOrders(register + `{"ip":"a b"}`), grpcv2.InstanceResponse, 500, 400, "'ip'"},
			{"life times", c, grpcv2.InstanceType, one(`,"metadata":{"preserved.heart.beat.interval":"9000","preserved.heart.beat.timeout":"3000"}`), grpcv2.ErrorResponse, 400, 400, "'heart beat interval' must less"},
			{"large metadata", c, grpcv2.InstanceType, one(`,"metadata":{"a":"` + long(70000) + `"}`), grpcv2.InstanceResponse, 500, 400, "Param check invalid:Param 'metadata'"},
			{"long ID", c, grpcv2.InstanceType, one(`,"instanceId":"` + long(2000) + `"`), grpcv2.InstanceResponse, 500, 400, "'instanceId'"},
			{"weight out of range", c, grpcv2.InstanceType, one(`,"weight":20000`), grpcv2.InstanceResponse, 200, 0, ""},
			{"not a naming client", config, grpcv2.InstanceType, one(""), grpcv2.ErrorResponse, -401, -401, "connection already disconnect, can't register ephemeral instance. "},
			{"a subscription of it", config, grpcv2.SubscribeService, inOrders(`,"subscribe":true`), grpcv2.ErrorResponse, -401, -401, "Client [94"},
			{"the end of one of it", config, grpcv2.SubscribeService, inOrders(""), grpcv2.ErrorResponse, -401, -401, ""},
			{"a query of it", config, grpcv2.ServiceQuery, inOrders(""), grpcv2.QueryServiceResponse, 200, 0, ""},

			{"persistent into ephemeral", c, grpcv2.PersistentInstance, one(""), grpcv2.ErrorResponse, 400, 400, "errCode: 400, errMsg: Current service g@@orders is ephemeral service, can't register persistent instance. "},
			{"persistent without a type", c, grpcv2.PersistentInstance, inOrders(""), grpcv2.ErrorResponse, 500, 500, ""},
			{"batch without a list", c, grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance"`), grpcv2.ErrorResponse, 500, 500, ""},
			{"batch with a null", c, grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance","instances":[null]`), grpcv2.BatchInstanceResponse, 500, 400, "Param check invalid:"},
			{"batch of another service", c, grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance","instances":[{"ip":"1","serviceName":"g@@s"}]`), grpcv2.BatchInstanceResponse, 500, 400, "'serviceName'"},
			{"batch of another type", c, grpcv2.BatchInstance, inOrders(`,"type":"registerInstance","instances":[]`), grpcv2.ErrorResponse, 400, 400, "Unsupported request type registerInstance"},
			{"batch", c, grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance","instances":[{"ip":"1","clusterName":"a_b"}]`), grpcv2.BatchInstanceResponse, 200, 0, `"type":"batchRegisterInstance"`},

			{"query without names", c, grpcv2.ServiceQuery, "{}", grpcv2.QueryServiceResponse, 200, 0, `"hosts":[]`},
			{"query echoes what it got", c, grpcv2.ServiceQuery, `{"serviceName":"s","groupName":null}`, grpcv2.QueryServiceResponse, 200, 0, `"serviceInfo":{"name":"s","clusters":"",`},
			{"subscribe without names", c, grpcv2.SubscribeService, `{"subscribe":true}`, grpcv2.ErrorResponse, 500, 500, "serviceName is blank"},
			{"many clusters", c, grpcv2.SubscribeService, inOrders(`,"subscribe":true,"clusters":"` + strings.Repeat("a,", 9000) + `"`), grpcv2.SubscribeServiceResponse, 500, 400, "'cluster'"},
			{"list", c, grpcv2.ServiceList, `{"groupName":"g","pageNo":1,"pageSize":2147483647}`, grpcv2.ServiceListResponse, 200, 0, `"count":1,"serviceNames":["orders"]`},
			{"list of page 0", c, grpcv2.ServiceList, `{"groupName":"g","pageNo":0,"pageSize":10}`, grpcv2.ServiceListResponse, 200, 0, `["orders"]`},
			{"list beyond the end", c, grpcv2.ServiceList, `{"groupName":"g","pageNo":2147483647,"pageSize":2147483647}`, grpcv2.ServiceListResponse, 200, 0, `"count":1,"serviceNames":[]`},
			{"list of no group", c, grpcv2.ServiceList, `{"groupName":"","pageNo":1,"pageSize":10}`, grpcv2.ServiceListResponse, 200, 0, `"count":0,"serviceNames":[]`},
			{"list backwards", c, grpcv2.ServiceList, `{"groupName":"g","pageNo":1,"pageSize":-1}`, grpcv2.ErrorResponse, 500, 500, "fromIndex(0) > toIndex(-1)"},

			{"config query", config, grpcv2.ConfigQuery, `{"dataId":"a"}`, grpcv2.ConfigQueryResponse, 500, 300, `"config data not exist","lastModified":0`},
			{"config listen", config, grpcv2.ConfigListen, `{"listen":true}`, grpcv2.ConfigListenResponse, 200, 0, `"changedConfigs":[]`},
			{"config publish", config, grpcv2.ConfigPublish, `{}`, grpcv2.ConfigPublishResponse, 500, 501, "Rollcall"},
			{"config remove", config, grpcv2.ConfigRemove, `{}`, grpcv2.ConfigRemoveResponse, 500, 501, "Rollcall"},

			{"deregister", c, grpcv2.InstanceType, inOrders(`,"type":"deregisterInstance","instance":{"ip":"9.9.9.9","weight":0}`), grpcv2.InstanceResponse, 200, 0, `"type":"deregisterInstance"`},
			{"deregister once more", c, grpcv2.InstanceType, inOrders(`,"type":"deregisterInstance"`), grpcv2.InstanceResponse, 200, 0, ""},
		} {
			got := tt.from.call(tt.kind, tt.body)
			if got.kind != tt.answer || got.body["resultCode"] != float64(tt.result) || got.code() != tt.code ||
				got.body["success"] != (tt.result == 200) || !strings.Contains(got.text, tt.text) {
				t.Errorf("%s: got %v, want %s %d/%d %s", tt.name, got, tt.answer, tt.result, tt.code, tt.text)
			}
		}
		if r.listed() != "" {
			t.Errorf("left: %s", r.listed())
		}
		if n := r.observed.answered["other 302"]; n == 0 || r.observed.answered["InstanceRequest 0"] == 0 {
			t.Errorf("observed %v", r.observed.answered)
		}
	})
}

func TestPersistentInstances(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		instance := func(op string) answer {
			return c.call(grpcv2.PersistentInstance, inOrders(`,"type":"`+op+`","instance":{"ip":"10.1.1.1","port":1,"ephemeral":false}`))
		}
		if got := instance(grpcv2.Register); got.kind != grpcv2.InstanceResponse || got.code() != 0 {
			t.Fatalf("got %v", got)
		}
		if got := c.register(2); got.code() != grpcv2.CodeInvalid {
			t.Errorf("ephemeral into persistent: %v", got)
		}
		c.session.Closed(false)
		if r.listed() != "1" {
			t.Errorf("after the connection: %q", r.listed())
		}
		c, _ = r.join()
		if got := instance(grpcv2.Deregister); got.code() != 0 || r.listed() != "" {
			t.Errorf("got %v, listed %q", got, r.listed())
		}
	})
}

// What a request is called says which kind it registers; ephemeral in the instance
// counts for nothing (recorded: batch-bad).
func TestRequestDecidesTheKind(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		const marked = `{"ip":"10.1.1.1","port":2,"ephemeral":false}`
		c.register(1)
		if got := c.instance(grpcv2.Register, marked); got.code() != 0 {
			t.Errorf("marked as persistent: %v", got)
		}
		if got := r.store.View(orders).Instances; len(got) != 1 || got[0].Port != 2 || !got[0].Ephemeral {
			t.Errorf("registered %v", got)
		}
		got := c.call(grpcv2.PersistentInstance, inOrders(`,"type":"registerInstance","instance":`+marked))
		if got.code() != grpcv2.CodeInvalid || !strings.Contains(got.text, "g@@orders is ephemeral service") {
			t.Errorf("persistent into ephemeral: %v", got)
		}
		c.session.Closed(false)
		if r.listed() != "" {
			t.Errorf("listed %q after the connection", r.listed())
		}
	})
}

// A connection has one slot in each service.
func TestSlots(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		for port := 9202; port <= 9204; port++ {
			c.register(port)
		}
		if r.listed() != "9204" {
			t.Errorf("listed %q, want the last", r.listed())
		}
		c.call(grpcv2.InstanceType, `{"namespace":null,"serviceName":"other","groupName":"g","type":"registerInstance","instance":{"ip":"10.1.1.1","port":7}}`)
		c.call(grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance","instances":[{"ip":"10.1.1.1","port":1},{"ip":"10.1.1.1","port":2}]`))
		if r.listed() != "1 2" {
			t.Errorf("listed %q, want the batch", r.listed())
		}
		c.instance(grpcv2.Deregister, `{"ip":"10.1.1.1","port":1}`)
		if r.listed() != "" {
			t.Errorf("listed %q after a deregistration", r.listed())
		}
		if got := c.call(grpcv2.ServiceQuery, `{"namespace":"","serviceName":"other","groupName":"g"}`); got.ports() != "7" {
			t.Errorf("another service: %v", got)
		}
	})
}

func TestInstanceIDs(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		for instance, want := range map[string]string{
			`{"ip":"10.1.1.1","port":1,"clusterName":"DEFAULT"}`:                                 "10.1.1.1#1#DEFAULT#g@@orders",
			`{"ip":"10.1.1.1","port":1,"clusterName":null}`:                                      "10.1.1.1#1#null#g@@orders", // Java
			`{"ip":"10.1.1.1","port":1,"clusterName":""}`:                                        "10.1.1.1#1##g@@orders",     // Go
			`{"ip":"10.1.1.1","port":1,"clusterName":"c","instanceId":"mine"}`:                   "mine",
			`{"ip":"10.1.1.1","port":1,"clusterName":"c","serviceName":"g@@orders"}`:             "10.1.1.1#1#c#g@@orders",
			`{"ip":"10.1.1.1","port":1,"clusterName":"c","serviceName":"g@@else"}`:               "10.1.1.1#1#c#g@@else",
			`{"ip":"10.1.1.1","port":1,"serviceName":"orders"}`:                                  "10.1.1.1#1#null#orders",
			`{"ip":"2001:DB8::1","port":1,"clusterName":"c","metadata":{"a":"1","b":null}}`:      "2001:DB8::1#1#c#g@@orders",
			`{"ip":"10.1.1.1","port":1,"clusterName":"c","instanceId":"","serviceName":" \t\n"}`: "10.1.1.1#1#c#g@@orders",
		} {
			if got := c.instance(grpcv2.Register, instance); got.code() != 0 {
				t.Errorf("%s: %v", instance, got)
			}
			got := c.call(grpcv2.ServiceQuery, inOrders(""))
			if !strings.Contains(got.text, `"instanceId":"`+want+`"`) {
				t.Errorf("%s: got %v, want %s", instance, got, want)
			}
		}
	})
}

func TestQueries(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, _ := r.join()
		c.call(grpcv2.BatchInstance, inOrders(`,"type":"batchRegisterInstance","instances":[
			{"ip":"10.1.1.1","port":1,"clusterName":"a"},{"ip":"10.1.1.1","port":2,"clusterName":"b","healthy":false},
			{"ip":"10.1.1.1","port":3,"clusterName":"b"},{"ip":"10.1.1.1","port":4,"clusterName":"c","enabled":false}]`))
		for query, want := range map[string]string{
			``: "1 2 3", `,"cluster":""`: "1 2 3", `,"cluster":"b"`: "2 3", `,"cluster":"b,a,b"`: "1 2 3", `,"cluster":"a,zzz"`: "1",
			`,"cluster":"zzz"`: "", `,"cluster":"c"`: "", `,"healthyOnly":true`: "1 3", `,"healthyOnly":true,"cluster":"b"`: "3", `,"cluster":","`: "1 2 3",
		} {
			for range 2 { // encoded, and from the cache
				if got := c.call(grpcv2.ServiceQuery, inOrders(query)); got.ports() != want {
					t.Errorf("%s: got %v, want %s", query, got, want)
				}
			}
		}
	})
}

// Many calls of one connection at once, about the same services, and then its
// end: nothing is left, and no call fails for an internal reason.
func TestConcurrentCalls(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, _ := r.join()
			var calls sync.WaitGroup
			for n := range 32 {
				calls.Go(func() {
					for range 30 {
						service := []string{"f", "g"}[rand.IntN(2)]
						members := fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"g"`, service)
						body, kind := members+`,"subscribe":`+fmt.Sprint(rand.IntN(2) == 0)+`}`, grpcv2.SubscribeService
						if op := rand.IntN(3); op < 2 {
							kind = grpcv2.InstanceType
							body = members + `,"type":"` + []string{grpcv2.Register, grpcv2.Deregister}[op] + fmt.Sprintf(`","instance":{"ip":"10.1.1.1","port":%d}}`, n)
						}
						got := c.call(kind, body)
						if code := got.code(); code != 0 && code != grpcv2.CodeDisconnected && code != grpcv2.CodeUnregistered {
							t.Errorf("got %v", got)
						}
					}
				})
			}
			time.Sleep(time.Millisecond)
			c.session.Closed(false)
			calls.Wait()
			time.Sleep(time.Second)
			if n := r.store.Counts(); n.Ephemeral != 0 || n.Subscribers != 0 {
				t.Errorf("left after the connection: %+v", n)
			}
			if got := r.store.ClientHoldings(c.id()); len(got) > 0 {
				t.Errorf("the connection still holds %v", got)
			}
		})
	}
}

// A handler that panics costs one answer.
func TestPanic(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c, s := r.join()
		c.register(1)
		r.encoder = nil
		if got := c.call(grpcv2.ServiceQuery, inOrders("")); got.kind != grpcv2.ErrorResponse || got.code() != grpcv2.CodeServerError || !strings.Contains(got.text, "under id") {
			t.Errorf("got %v", got)
		}
		if got := c.call(grpcv2.HealthCheck, "{}"); got.code() != 0 {
			t.Errorf("the connection is not well after it: %v", got)
		}
		s.none("a panic")
	})
}

// FuzzAnswers sends any text as any request: each is answered with a JSON object
// that every SDK can read, and nothing panics.
func FuzzAnswers(f *testing.F) {
	kinds := []string{
		grpcv2.ServerCheck, grpcv2.HealthCheck, grpcv2.InstanceType, grpcv2.BatchInstance, grpcv2.PersistentInstance, grpcv2.ServiceQuery,
		grpcv2.SubscribeService, grpcv2.ServiceList, grpcv2.FuzzyWatch, grpcv2.ConfigQuery, grpcv2.ConfigListen, "Other",
	}
	for n := range kinds {
		f.Add(byte(n), inOrders(`,"type":"registerInstance","instance":{"ip":"10.1.1.1","port":1,"metadata":{"a":"b"}},"instances":[{"ip":"1"}],"subscribe":true,"clusters":"a","watchType":"WATCH","groupKeyPattern":"public>>g>>*","pageNo":1,"pageSize":10`))
	}
	f.Fuzz(func(t *testing.T, kind byte, body string) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c := r.connect()
			s := c.open()
			s.say(grpcv2.ConnectionSetup, `{"labels":{"module":"naming"},"abilityTable":{"fuzzyWatch":true}}`)
			s.say(grpcv2.ConnectionSetup, body)
			s.say("NotifySubscriberResponse", body)
			got := c.call(kinds[int(kind)%len(kinds)], body)
			result, ok := got.body["resultCode"].(float64)
			if _, coded := got.body["errorCode"].(float64); !ok || !coded || got.body["success"] != (result == 200) || strings.Contains(got.text, "panicked") || strings.Contains(got.text, "internal error") {
				t.Errorf("got %v", got)
			}
			time.Sleep(time.Second)
			for _, a := range s.take() {
				if _, ok := a.body["headers"].(map[string]any); !ok || !json.Valid([]byte(a.text)) {
					t.Errorf("pushed %v", a)
				}
			}
			c.session.Closed(false)
			if n := r.store.Counts(); n.Ephemeral != 0 || n.Subscribers != 0 {
				t.Errorf("left after the connection: %+v", n)
			}
		})
	})
}

// A deregistration may wait for the disk only while an operator has overridden some
// instance.
func TestBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := &client{api: r.API}
	payload := func(kind, body string) *grpcv2.Payload { return &grpcv2.Payload{Type: kind, Body: []byte(body)} }
	deregistration := payload(grpcv2.InstanceType, `{"type":"deregisterInstance"}`)
	blocks := func(want ...bool) {
		t.Helper()
		for n, p := range []*grpcv2.Payload{
			payload(grpcv2.InstanceType, `{"type":"registerInstance"}`), deregistration, payload(grpcv2.PersistentInstance, `{}`),
		} {
			if got := c.Blocks(p); got != want[n] {
				t.Errorf("%s %s blocks: %v", p.Type, p.Body, got)
			}
		}
	}
	blocks(false, false, true)
	key := registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "orders"}
	target := registry.InstanceKey{IP: "10.0.0.1", Port: 8080, Cluster: registry.DefaultCluster}
	apply := func(cmd registry.Command) {
		if _, err := r.store.Apply(cmd); err != nil {
			t.Fatal(err)
		}
	}
	apply(&registry.SetOverride{Service: key, Entries: []registry.TargetOverride{{Target: target, Override: registry.Override{Weight: new(2.0)}}}})
	blocks(false, true, true)
	apply(&registry.DropOverride{Service: key, Target: target})
	blocks(false, false, true)
}
