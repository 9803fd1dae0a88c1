package httpmode

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

const listLine = "GET /v1/ns/instance/list"

func subscribe(t *testing.T, w *world) wire.List {
	t.Helper()
	list, err := w.Subscribe(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// gaps returns the times between times.
func gaps(at []time.Duration) []time.Duration {
	var between []time.Duration
	for n := 1; n < len(at); n++ {
		between = append(between, at[n]-at[n-1])
	}
	return between
}

func TestPollsFollowTheServer(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		list := subscribe(t, w)
		if !list.Asked || list.Server != first || list.Session == "" || list.Service != orders {
			t.Errorf("got %+v", list)
		}
		time.Sleep(22 * time.Second)
		f.set(func(f *fake) { f.cacheMillis = 3000 })
		time.Sleep(14 * time.Second)
		polls := times(f.of(listLine))
		if len(polls) < 6 || polls[0] != 0 || polls[1] != time.Second {
			t.Fatalf("polls at %v", polls)
		}
		for n, wait := range gaps(polls)[1:] {
			want := 10 * time.Second
			if polls[n+1] > 22*time.Second {
				want = 3 * time.Second
			}
			if wait > want || wait < want*9/10 {
				t.Errorf("poll %d after %v, want %v or up to a tenth less", n+2, wait, want)
			}
		}
		if n := w.events.pushes(); n != len(polls)-1 {
			t.Errorf("%d lists handed over after %d polls", n, len(polls))
		}
		if err := w.Unsubscribe(t.Context(), orders); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := len(f.of(listLine)); n != len(polls) {
			t.Errorf("polled after the end: %d", n)
		}
	})
}

// What answers 404 without having looked, as a proxy before a server that is away, has
// not said that a service is empty, or that an instance is gone.
func TestPagesAreNotAnswers(t *testing.T) {
	for name, page := range map[string]string{
		"nothing": "", "nginx": "<html><head><title>404 Not Found</title></head></html>", "Go": "404 page not found",
		"Spring": `{"timestamp":"2026-11-30T00:36:24.185+00:00","status":404,"error":"Not Found","path":"/nacos/v1/ns/instance/list"}`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
				f := w.fakes[first]
				if err := w.Publish(t.Context(), orders, []wire.Instance{instance(1)}); err != nil {
					t.Fatal(err)
				}
				subscribe(t, w)
				time.Sleep(12 * time.Second)
				n := w.events.pushes()
				f.set(func(f *fake) { f.status, f.text = http.StatusNotFound, page })
				time.Sleep(time.Minute)
				if lists := w.events.since(n); len(lists) > 0 {
					t.Errorf("handed over %s", lists[0].Raw)
				}
				if list, err := w.Query(t.Context(), orders); err == nil {
					t.Errorf("asked, it is %s", list.Raw)
				}
				if err := w.Publish(t.Context(), orders, nil); err == nil {
					t.Error("withdrawn")
				}
				f.set(func(f *fake) { f.status = 0 })
				if err := w.Publish(t.Context(), orders, nil); err != nil || f.has("10.1.0.1:1") {
					t.Errorf("it stays: %v", err)
				}
			})
		})
	}
}

func TestPollsBackOff(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		subscribe(t, w)
		f.set(func(f *fake) { f.status, f.text = http.StatusInternalServerError, "caused: something" })
		time.Sleep(200 * time.Second)
		got := times(f.of(listLine))
		// the first after 1 s, then 2, 4, 8, 16, 32, 60, 60
		var want []time.Duration
		for _, second := range []int{0, 1, 3, 7, 15, 31, 63, 123, 183} {
			want = append(want, time.Duration(second)*time.Second)
		}
		if !slices.Equal(got, want) {
			t.Errorf("polls at %v, want %v", got, want)
		}
		f.set(func(f *fake) { f.status = 0 })
		time.Sleep(60 * time.Second)
		if got := gaps(times(f.of(listLine))); got[len(got)-1] > 10*time.Second {
			t.Errorf("polls after %v; after a success each 10 s", got)
		}
	})
}

func TestPollInterval(t *testing.T) {
	tests := []struct {
		raw    string
		pushes bool
		want   time.Duration
	}{
		{`{"cacheMillis":10000}`, true, 10 * time.Second},
		{`{"cacheMillis":20000}`, true, 10 * time.Second},
		{`{"cacheMillis":20000}`, false, 20 * time.Second},
		{`{"cacheMillis":3000}`, true, 3 * time.Second},
		{`{"cacheMillis":1}`, true, time.Second},
		{`{"cacheMillis":9223372036854775807}`, false, time.Minute},
		{`{"cacheMillis":-1}`, true, unsaid},
		{`{}`, true, unsaid},
		{`nonsense`, true, unsaid},
	}
	for _, test := range tests {
		if got := pollInterval([]byte(test.raw), test.pushes); got != test.want {
			t.Errorf("%s: got %v, want %v", test.raw, got, test.want)
		}
	}
}

// A push that comes while a poll is on its way is the newer of the two.
func TestPollAfterPushOnlyRenews(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		subscribe(t, w)
		time.Sleep(2 * time.Second)
		before := w.events.pushes()
		f.set(func(f *fake) {
			f.handle = func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false }
		})
		for polls := len(f.of(listLine)); len(f.of(listLine)) == polls; {
			time.Sleep(100 * time.Millisecond) // until the next poll is on its way
		}
		if _, dropped := (&receiver{transport: w.Transport, events: w.events}).handle(push("DEFAULT_GROUP@@orders", 5), server); dropped != "" {
			t.Fatal(dropped)
		}
		time.Sleep(2 * time.Second)
		if got := w.events.since(before); len(got) != 1 || got[0].Asked {
			t.Errorf("%d lists handed over, want the push alone", len(got))
		}
	})
}

// server is the address from which the fakes' machine would push.
var server = netip.MustParseAddrPort("10.0.0.1:40000")

func TestHintsPollSoonAndNotOften(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		subscribe(t, w)
		time.Sleep(5 * time.Second)
		r := &receiver{transport: w.Transport, events: w.events}
		stranger := netip.MustParseAddrPort("10.9.9.9:1")
		for range 100 {
			if ack, dropped := r.handle(push("DEFAULT_GROUP@@orders", 5), stranger); ack != nil || dropped != "udp_stranger" {
				t.Fatalf("a stranger is answered %s, %s", ack, dropped)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := len(f.of(listLine)); n < 5 || n > 9 {
			t.Errorf("%d polls after 100 hints in 5 s, want about one a second", n)
		}
	})
}

// Two servers whose clocks differ: what the one pushes is not compared with what the
// other answered.
func TestPushOfAnotherServer(t *testing.T) {
	const second = "10.0.0.2:8848"
	inWorld(t, []string{first, second}, nil, func(t *testing.T, w *world) {
		subscribe(t, w)
		time.Sleep(5 * time.Second)
		other := netip.MustParseAddrPort("10.0.0.1:40000")
		if asked := w.caller.preferred.Load(); asked.HTTP() == first {
			other = netip.MustParseAddrPort("10.0.0.2:40000")
		}
		w.caller.learn(net.TCPAddrFromAddrPort(other)) // it was asked some time ago
		before, polled := w.events.pushes(), len(w.fakes[first].of(listLine))+len(w.fakes[second].of(listLine))
		r := &receiver{transport: w.Transport, events: w.events}
		if ack, dropped := r.handle(push("DEFAULT_GROUP@@orders", 5), other); ack == nil || dropped != "" {
			t.Errorf("%s, %s", ack, dropped)
		}
		time.Sleep(10 * time.Millisecond)
		if n := len(w.fakes[first].of(listLine)) + len(w.fakes[second].of(listLine)); n != polled+1 {
			t.Errorf("%d polls, want one more than %d", n, polled)
		}
		for _, list := range w.events.since(before) {
			if !list.Asked {
				t.Error("the push was taken")
			}
		}
	})
}

func TestOneNameInTwoNamespaces(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		subscribe(t, w)
		other := orders
		other.Namespace = "other"
		if _, err := w.Subscribe(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		before, polled := w.events.pushes(), len(f.of(listLine))
		r := &receiver{transport: w.Transport, events: w.events}
		if ack, dropped := r.handle(push("DEFAULT_GROUP@@orders", 5), server); ack == nil || dropped != "" {
			t.Fatalf("%s, %s", ack, dropped)
		}
		time.Sleep(10 * time.Millisecond)
		if n := len(f.of(listLine)) - polled; n != 2 {
			t.Errorf("%d polls, want one of each namespace", n)
		}
		for _, list := range w.events.since(before) {
			if !list.Asked {
				t.Error("a push was taken although nobody knows for which namespace it is")
			}
		}
	})
}

func TestQueryFindsTheGeneration(t *testing.T) {
	notFound := func(paths ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			for _, known := range paths {
				path, body, _ := strings.Cut(known, " ")
				if strings.HasSuffix(r.URL.Path, path) {
					_, _ = w.Write([]byte(body))
					return true
				}
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		}
	}
	unauthorized := func(handle func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/api/") {
				w.WriteHeader(http.StatusUnauthorized) // of 0.9, with an empty body
				return true
			}
			return handle(w, r)
		}
	}
	without := func(path string, handle func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, path) {
				http.Error(w, "dom not found: orders", http.StatusNotFound)
				return true
			}
			return handle(w, r)
		}
	}
	host := `{"ip":"1.1.1.1","port":1,"healthy":true,"enabled":true,"weight":1.0}`
	tests := map[string]struct {
		handle func(http.ResponseWriter, *http.Request) bool
		path   string
		want   string
	}{
		"1.x": {nil, listLine, `"cacheMillis":10000`},
		"0.9": {
			unauthorized(notFound(`/v1/ns/api/hello {"msg":"Hello!"}`, `/v1/ns/api/srvIPXT {"dom":"orders","hosts":[]}`)),
			"GET /v1/ns/api/srvIPXT", `"dom":"orders"`,
		},
		"0.9 without the service": {
			unauthorized(without("/v1/ns/api/srvIPXT", notFound(`/v1/ns/api/hello {}`))), "GET /v1/ns/api/srvIPXT", `{"hosts":[]}`,
		},
		"3.x with the old API closed": {
			notFound(`/v3/client/ns/instance/list {"code":0,"message":"success","data":[` + host + `]}`),
			"GET /v3/client/ns/instance/list", `{"hosts":[` + host + `]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
				f := w.fakes[first]
				f.set(func(f *fake) { f.handle = test.handle })
				w.mu.Lock()
				w.up = false // as before the session
				w.mu.Unlock()
				list, err := w.Query(t.Context(), orders)
				if err != nil || !strings.Contains(string(list.Raw), test.want) {
					t.Errorf("got %s, %v", list.Raw, err)
				}
				if len(f.of(test.path)) == 0 {
					t.Errorf("%s was not asked", test.path)
				}
			})
		})
	}
}

func TestNoGroupsIn09(t *testing.T) {
	s := orders
	s.Group = "other"
	if err := supports(legacy{}, s); wire.KindOf(err) != wire.Unsupported {
		t.Errorf("got %v", err)
	}
	if err := supports(legacy{}, orders); err != nil {
		t.Error(err)
	}
}
