package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	offset := Ports{Offset: 1000}
	tests := map[string]Server{
		"10.0.0.1":                   {Host: "10.0.0.1", Port: 8848, GRPCPort: 9848},
		" nacos.local:80 ":           {Host: "nacos.local", Port: 80, GRPCPort: 1080},
		"[::1]:8848":                 {Host: "::1", Port: 8848, GRPCPort: 9848},
		"[::1]":                      {Host: "::1", Port: 8848, GRPCPort: 9848},
		"::1":                        {Host: "::1", Port: 8848, GRPCPort: 9848},
		"http://a:1/nacos":           {Host: "a", Port: 1, GRPCPort: 1001},
		"bücher.example_1:80":        {Host: "bücher.example_1", Port: 80, GRPCPort: 1080},
		"https://a.b":                {Secure: true, Host: "a.b", Port: 8848, GRPCPort: 9848},
		"https://[fe80::1%25eth0]:1": {},
	}
	for entry, want := range tests {
		got, err := Parse(entry, offset)
		if want.Host == "" {
			continue // whatever it is, it must not panic
		}
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", entry, got, err, want)
		}
	}
	if s, _ := Parse("[::1]:8848", Ports{GRPC: 7}); s.HTTP() != "[::1]:8848" || s.GRPC() != "[::1]:7" {
		t.Errorf("%s and %s", s.HTTP(), s.GRPC())
	}
	for _, bad := range []string{"", "a b", "ftp://a", "a:0", "a:65536", "a:x", "a,b", "user@a", "http://u:p@a", "a:65000", "a/b", ":1", "[a]:1:2", "::1::", "<html>", "</body>", "a\x00b", "{}"} {
		if s, err := Parse(bad, offset); err == nil {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"10.0.0.1:80", "[::1]:1", "https://a:1/x", "::1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		s, err := Parse(entry, Ports{Offset: 1000})
		if err != nil {
			return
		}
		again, err := Parse(s.HTTP(), Ports{Offset: 1000})
		if again.Secure = s.Secure; err != nil || again != s {
			t.Errorf("%q is %+v, which reads as %+v, %v", entry, s, again, err)
		}
	})
}

func TestRefresh(t *testing.T) {
	var entries []string
	var failure error
	l := New(func(context.Context) ([]string, error) { return entries, failure }, Ports{Offset: 1000})
	if err := l.Refresh(t.Context()); err == nil || l.Round() != nil {
		t.Errorf("an empty list: %v", err)
	}
	entries = []string{"a", "b:1", "a:8848"}
	changed := l.Changed()
	if err := l.Refresh(t.Context()); err != nil || len(l.Round()) != 2 {
		t.Errorf("got %v, %v", l.Round(), err)
	}
	<-changed
	changed = l.Changed()
	slices.Reverse(entries)
	for _, step := range []func(){
		func() {},
		func() { failure = errors.New("down") },
		func() { failure, entries = nil, nil },
		func() { entries = []string{"a", "bad one"} },
	} {
		step()
		_ = l.Refresh(t.Context()) // what is wrong leaves the list as it was
		if len(l.Round()) != 2 || !l.Has(Server{Host: "a", Port: 8848, GRPCPort: 9848}) {
			t.Errorf("the list is %v", l.Round())
		}
		select {
		case <-changed:
			t.Error("said to have changed")
		default:
		}
	}
}

func TestRoundsAreRandom(t *testing.T) {
	l := New(Static([]string{"a", "b", "c"}), Ports{})
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	firsts := make(map[string]int)
	for range 3000 {
		round := l.Round()
		if len(round) != 3 {
			t.Fatalf("a round of %v", round)
		}
		firsts[round[0].Host]++
	}
	for host, n := range firsts {
		if n < 800 || n > 1200 {
			t.Errorf("%s came first %d times of 3000", host, n)
		}
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	if b.Delay(0) != 0 {
		t.Error("a wait without a failure")
	}
	for n, ceiling := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 6: 3200 * time.Millisecond, 7: 5 * time.Second, 1000: 5 * time.Second} {
		longest := time.Duration(0)
		for range 2000 {
			longest = max(longest, b.Delay(n))
		}
		if longest > ceiling || longest < ceiling*9/10 {
			t.Errorf("after %d failures up to %v, want %v", n, longest, ceiling)
		}
	}
}

func TestEndpoint(t *testing.T) {
	status, body := http.StatusOK, "10.0.0.1:8848\r\n\n# comment\n10.0.0.2 # second\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/nacos/serverlist" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	source, err := Endpoint(server.Client(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	got, err := source(t.Context())
	if want := []string{"10.0.0.1:8848", "10.0.0.2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	status = http.StatusInternalServerError
	if got, err := source(t.Context()); err == nil {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"ftp://x", "http://", "%"} {
		if _, err := Endpoint(nil, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
