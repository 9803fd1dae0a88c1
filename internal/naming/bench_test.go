package naming

import (
	"fmt"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkPublish registers an instance of a gRPC client in a service of so many
// others, which changes each time: it must not cost more in a large service.
func BenchmarkPublish(b *testing.B) {
	for _, others := range []int{10, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			r := newRig(b)
			publish := func(client registry.ClientID, ip string, weight float64) {
				i := registration(key(ip, 8080, registry.DefaultCluster)).Instance
				i.Weight = weight
				slot := Slot{Service: orders, Client: client, Instances: []registry.Instance{i}}
				if _, err := r.Publish(b.Context(), testCause, slot); err != nil {
					b.Fatal(err)
				}
			}
			for n := range others {
				client := registry.ClientID(fmt.Sprint("other-", n))
				r.Open(client)
				publish(client, fmt.Sprintf("10.1.%d.%d", n/250, n%250), 1)
			}
			r.Open("mine")
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				publish("mine", "10.2.0.1", float64(1+n%2))
			}
		})
	}
}
