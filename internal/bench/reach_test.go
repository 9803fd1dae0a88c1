package bench

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
	"github.com/rollcall-registry/rollcall/servertest"
)

// mute takes connections and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return ln.Addr().String()
}

// A server that says nothing costs one pause, and a protocol that it does not speak
// fails what needs it.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	query := func(p target.Protocol) workload.Config {
		c := workload.Config{Workload: "query", Protocol: p, Services: 2, Instances: 2, Connections: 2, Duration: 100 * time.Millisecond}
		complete(t, &c)
		return c
	}
	work := []workload.Config{query(target.HTTP), query(target.GRPC)}
	for _, tt := range []struct {
		name, http, grpc string
		fails            bool
	}{
		{"on no protocol", mute(t), mute(t), true},
		{"over gRPC", servertest.New(t).Addr(), mute(t), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, err := target.New("mute", tt.http, tt.grpc)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			results, err := (&Runner{Targets: []*target.Target{server}, Work: work, Seed: 1}).Run(t.Context())
			if (err != nil) != tt.fails || time.Since(begun) > 20*time.Second {
				t.Fatalf("got %v after %v", err, time.Since(begun))
			}
			if tt.fails {
				if len(results) != 0 || !strings.Contains(err.Error(), "mute does not answer") {
					t.Errorf("got %v and %+v", err, results)
				}
				return
			}
			if results[0].Fault != "" || !strings.Contains(results[1].Fault, "no answer within") {
				t.Errorf("got %+v", results)
			}
		})
	}
}
