package hosts

import (
	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// defaultIDGenerator is shown of an instance without metadata. Source: Nacos
// Constants.DEFAULT_INSTANCE_ID_GENERATOR.
const defaultIDGenerator = "simple"

// Append appends one instance as JSON. healthy is the health to show, and grouped
// is group@@service.
func Append(b []byte, i *registry.Instance, healthy bool, grouped string) []byte {
	host := Of(i, healthy, grouped)
	return grpcv2.AppendHost(b, &host)
}

// Of returns what clients are told of an instance. The ID generator is shown when
// the metadata names it, and when there is no metadata at all.
func Of(i *registry.Instance, healthy bool, grouped string) grpcv2.Host {
	generator := defaultIDGenerator
	if i.Metadata != "" {
		generator, _ = i.Metadata.Get(registry.KeyIDGenerator)
	}
	host := grpcv2.Host{
		HideID: i.HideID, IDCluster: i.Cluster,
		IP: i.IP, Port: i.Port, Cluster: i.Cluster, Service: grouped,
		Weight: i.Weight, Healthy: healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
		Metadata:            i.Metadata.JSON(),
		BeatIntervalMillis:  i.BeatInterval().Milliseconds(),
		BeatTimeoutMillis:   i.BeatTimeout().Milliseconds(),
		DeleteTimeoutMillis: i.DeleteTimeout().Milliseconds(),
		IDGenerator:         generator,
	}
	if i.Serial > 0 {
		host.ID = i.ID(grouped)
	}
	return host
}
