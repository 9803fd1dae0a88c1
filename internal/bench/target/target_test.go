package target

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/servertest"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		http, grpc string
		want       string // the gRPC address
		loopback   bool
	}{
		{"127.0.0.1:8848", "", "127.0.0.1:9848", true},
		{"localhost:80", "127.0.0.1:1", "127.0.0.1:1", true},
		{"[::1]:8848", "", "[::1]:9848", true},
		{"10.0.0.7:8848", "", "10.0.0.7:9848", false},
		{"127.0.0.1:8848", "10.0.0.7:9848", "10.0.0.7:9848", false},
		{"registry:8848", "", "registry:9848", false},
		{"127.0.0.1", "", "", false},
		{"127.0.0.1:http", "", "", false},
		{"127.0.0.1:8848", "x", "", false},
	} {
		s, err := New("x", tt.http, tt.grpc)
		if (err == nil) != (tt.want != "") {
			t.Errorf("%s %s: %v", tt.http, tt.grpc, err)
			continue
		}
		if err == nil && (s.GRPC != tt.want || s.Loopback() != tt.loopback) {
			t.Errorf("%s %s: got %s, remote %q", tt.http, tt.grpc, s.GRPC, s.Remote())
		}
	}
}

// Both kinds of session do the same to a real server.
func TestSessions(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	s, err := New("ours", server.Addr(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Protocol{HTTP, GRPC} {
		t.Run(string(p), func(t *testing.T) {
			f := &fleet.Fleet{Name: "target-" + string(p), Group: "DEFAULT_GROUP", Services: 2, Size: 3, Owners: 1}
			session, err := s.Dial(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			service := f.Service(1)
			if n, err := session.Count(service); n != 0 || err != nil {
				t.Errorf("at first: %d, %v", n, err)
			}
			if err := session.RegisterService(service); err != nil {
				t.Fatal(err)
			}
			list, err := session.List(service)
			if err != nil {
				t.Fatal(err)
			}
			all := func(host int) (fleet.Instance, bool) { return fleet.Instance{Service: service, Host: host}, true }
			if err := service.Check(list, all); err != nil {
				t.Error(err)
			}
			if n, err := session.Count(service); n != 3 || err != nil {
				t.Errorf("after registering: %d, %v", n, err)
			}
			first, _ := all(0)
			if err := session.Beat(first); err != nil {
				t.Errorf("beat: %v", err)
			}
			if p == HTTP {
				if err := session.Beat(fleet.Instance{Service: f.Service(0)}); !errors.Is(err, ErrUnknown) {
					t.Errorf("a beat of nobody: %v", err)
				}
				if err := session.Deregister(first); err != nil {
					t.Errorf("deregister: %v", err)
				}
				if n, err := session.Count(service); n != 2 || err != nil {
					t.Errorf("after deregistering: %d, %v", n, err)
				}
			}
		})
	}
}

// told is a listener that keeps what it was told.
type told struct{ seen, acked chan Seen }

func (h told) Told(s Seen)  { h.seen <- s }
func (h told) Acked(s Seen) { h.acked <- s }

func TestSubscribers(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	s, err := New("ours", server.Addr(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Protocol{HTTP, GRPC} {
		t.Run(string(p), func(t *testing.T) {
			f := &fleet.Fleet{Name: "told-" + string(p), Group: "DEFAULT_GROUP", Services: 1, Size: 30, Owners: 1}
			session, err := s.Dial(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if err := session.RegisterService(f.Service(0)); err != nil {
				t.Fatal(err)
			}
			h := told{make(chan Seen, 100), make(chan Seen, 100)}
			sub, err := s.NewSubscriber(t.Context(), p, h)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			if err := sub.Subscribe(f.Service(0), session); err != nil {
				t.Fatal(err)
			}
			if got, want := next(t, h.seen), (Seen{Hosts: 30, Healthy: 30, Enabled: 30}); got != want {
				t.Errorf("the answer told of %+v", got)
			}
			other, err := s.Dial(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if err := other.Register(fleet.Instance{Service: f.Service(0), Host: 30, Revision: 7}); err != nil {
				t.Fatal(err)
			}
			want := Seen{Hosts: 31, Healthy: 31, Enabled: 31, Revision: 7, Pushed: true}
			for next(t, h.seen) != want { // it may have been welcomed before
			}
			for next(t, h.acked) != want {
			}
			if err := sub.Renew(f.Service(0), session); err != nil {
				t.Error(err)
			}
		})
	}
}

func next(t *testing.T, from <-chan Seen) Seen {
	t.Helper()
	select {
	case s := <-from:
		return s
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
		return Seen{}
	}
}

// What is missing in long lists is found soon, in short ones at once.
func TestTally(t *testing.T) {
	list := func(n int) []byte {
		return bytes.Repeat([]byte(`{"ip":"127.0.0.1","port":1,"weight":1.0,"healthy":true}`), n)
	}
	var short, long tally
	for _, n := range []int{0, 10, 9, 100, 11} {
		if got := short.count(list(n)); got != n {
			t.Errorf("a list of %d is counted as %d", n, got)
		}
	}
	for range 3 * countEvery {
		if got := long.count(list(2000)); got != 2000 {
			t.Fatalf("got %d", got)
		}
	}
	if got := long.count(list(1900)); got != 1900 {
		t.Errorf("a list that is much shorter is counted as %d", got)
	}
	found := false
	for range countEvery {
		found = long.count(list(1899)) == 1899 || found
	}
	if !found {
		t.Error("one that is missing is not found")
	}
}

// Space between the tokens of an answer changes nothing.
func TestSpaceBetweenTokens(t *testing.T) {
	const list = "{\"hosts\" : [ {\"ip\": \"127.0.0.1\", \"healthy\" :\n true, \"enabled\": true, \"weight\": 1.12},\n" +
		" {\"ip\"\t:\"127.0.0.2\", \"healthy\": false, \"enabled\": true, \"metadata\": {\"a\": \"ip\"}} ], \"requestId\": \"7\" }"
	want := Seen{Hosts: 2, Healthy: 1, Enabled: 2, Revision: 12}
	if got := see([]byte(list), ""); got != want {
		t.Errorf("got %+v", got)
	}
	if got := see([]byte(strings.ReplaceAll(list, `"`, `\"`)), `\`); got != want {
		t.Errorf("escaped: got %+v", got)
	}
	if got := new(tally).count([]byte(list)); got != 2 {
		t.Errorf("%d are counted", got)
	}
	if id := requestID([]byte(list)); string(id) != "7" {
		t.Errorf("the request is %q", id)
	}
	var p packet
	if err := p.read([]byte(`{"type": "dom", "data": "{}", "lastRefTime": 12}`)); err != nil || string(p.number) != "12" {
		t.Errorf("a push: %q, %v", p.number, err)
	}
}

// A session that has lost its connection makes another.
func TestConnectsAgain(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	s, err := New("ours", server.Addr(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet.Fleet{Name: "again", Group: "DEFAULT_GROUP", Services: 1, Size: 1, Owners: 1}
	for _, p := range []Protocol{HTTP, GRPC} {
		session, err := s.Dial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		session.Close()
		if _, err := session.Count(f.Service(0)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		session.Close()
	}
}

const samplePush = `{"type":"dom","data":"{\"hosts\":[{\"ip\":\"127.0.0.1\",\"port\":1,\"healthy\":true,\"enabled\":true,` +
	`\"weight\":1.12},{\"ip\":\"127.0.0.2\",\"healthy\":false,\"enabled\":true}],` +
	`\"clusterIp\":\"x\",\"lastRefTime\":1}","lastRefTime":1234567}`

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

func TestPacket(t *testing.T) {
	var p packet
	for range 2 { // memory is used again
		for _, b := range [][]byte{[]byte(samplePush), zipped(samplePush)} {
			if err := p.read(b); err != nil {
				t.Fatal(err)
			}
			if got, want := see(p.text, `\`), (Seen{Hosts: 2, Healthy: 1, Enabled: 2, Revision: 12}); got != want {
				t.Errorf("got %+v", got)
			}
			if got := string(p.ack()); got != `{"type":"push-ack","lastRefTime":"1234567","data":""}` {
				t.Errorf("got %s", got)
			}
		}
	}
	for _, bad := range []string{"", "x", `{"type":"dom"}`, `{"type":"dom","lastRefTime":}`, "\x1f\x8bx", string(zipped("x"))} {
		if err := p.read([]byte(bad)); err == nil {
			t.Errorf("%q is a push", bad)
		}
	}
}

func FuzzPacket(f *testing.F) {
	f.Add([]byte(samplePush))
	f.Add(zipped(samplePush))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p packet
		if err := p.read(b); err != nil {
			return
		}
		_ = see(p.text, `\`)
		if ack := p.ack(); !bytes.HasPrefix(ack, []byte(`{"type":"push-ack","lastRefTime":"`)) || bytes.Count(ack, []byte(`"`)) != 12 {
			t.Errorf("the acknowledgement is %q", ack)
		}
	})
}

// A call over HTTP allocates nothing once its memory is there.
func TestCallsDoNotAllocate(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
		for buf := make([]byte, 4096); ; {
			if _, err := nc.Read(buf); err != nil {
				return
			}
			if _, err := nc.Write(answer); err != nil {
				return
			}
		}
	}()
	s, err := New("x", ln.Addr().String(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.Dial(t.Context(), HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	f := &fleet.Fleet{Name: strings.Repeat("x", 20), Group: "DEFAULT_GROUP", Services: 10, Size: 3, Owners: 1}
	n := 0
	call := func() {
		n++
		if err := session.Register(f.Instance(n)); err != nil {
			t.Fatal(err)
		}
		if err := session.Deregister(f.Instance(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Count(f.Service(n)); err != nil {
			t.Fatal(err)
		}
	}
	call()
	// Under the race detector pools forget now and then.
	if n := testing.AllocsPerRun(100, call); n > 1 {
		t.Errorf("%v allocations for three calls", n)
	}
}
