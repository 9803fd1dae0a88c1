package rollcall

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// bigList returns the list of n instances as Rollcall pushes it over gRPC; with another
// shift, one in `each` of them has another weight.
func bigList(n, shift, each int, refTime int64) []byte {
	b := []byte(`{"name":"orders","groupName":"DEFAULT_GROUP","clusters":"","cacheMillis":10000,"checksum":"","valid":true,"allIPs":false,"hosts":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		h := grpcv2.Host{
			IP: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Port: 8080, Cluster: "DEFAULT", Service: "DEFAULT_GROUP@@orders",
			Metadata: `{"version":"1.2.3","zone":"eu-1","protocol":"grpc"}`, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
			BeatIntervalMillis: 5000, BeatTimeoutMillis: 15000, DeleteTimeoutMillis: 30000,
		}
		if i%each == 0 {
			h.Weight += float64(shift)
		}
		b = grpcv2.AppendHost(b, &h)
	}
	return fmt.Appendf(b, `],"lastRefTime":%d,"reachProtectionThreshold":false}`, refTime)
}

// BenchmarkPush applies a push of 10,000 instances to a service that somebody watches,
// until its Update is in the channel.
func BenchmarkPush(b *testing.B) {
	const n = 10000
	for name, each := range map[string]int{"one-changed": n, "all-changed": 1} {
		b.Run(name, func(b *testing.B) {
			c, err := build([]Option{WithTransport(func() wire.Transport { return newFakeWire() }), WithLogger(slog.New(slog.DiscardHandler))})
			if err != nil {
				b.Fatal(err)
			}
			w, err := c.addWatch(wireOrders, filter{})
			if err != nil {
				b.Fatal(err)
			}
			updates := w.Updates()
			<-updates
			lists := [2][]byte{bigList(n, 0, each, 1), bigList(n, 1, each, 1)}
			if err := w.entry.answered(wire.List{Service: wireOrders, Session: "s", Asked: true, Raw: lists[0]}, 0, nil); err != nil {
				b.Fatal(err)
			}
			<-updates
			b.SetBytes(int64(len(lists[0])))
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				c.pushed(wire.List{Service: wireOrders, Session: "s", Raw: lists[i%2]})
				if u := <-updates; len(u.Changed) != (n+each-1)/each {
					b.Fatal(len(u.Changed))
				}
			}
		})
	}
}

// BenchmarkFirstList is the same list when nothing was known of the service.
func BenchmarkFirstList(b *testing.B) {
	list := bigList(10000, 0, 1, 1)
	var info grpcv2.ServiceInfo
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readInstances(list, &info, listed{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeByLibrary is what encoding/json needs for the same list, to compare.
func BenchmarkDecodeByLibrary(b *testing.B) {
	list := bigList(10000, 0, 1, 1)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		var info struct {
			Hosts []struct {
				IP          string
				Port        uint16
				Weight      float64
				Healthy     bool
				Enabled     bool
				Ephemeral   bool
				ClusterName string
				Metadata    map[string]string
			}
			LastRefTime int64
		}
		if err := json.Unmarshal(list, &info); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	c, err := build([]Option{WithTransport(func() wire.Transport { return newFakeWire() })})
	if err != nil {
		b.Fatal(err)
	}
	w, err := c.addWatch(wireOrders, filter{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if w.Snapshot().Len() != 0 {
				b.Fail()
			}
		}
	})
}
