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
	var room [128]byte // for most IDs
	host := grpcv2.Host{
		IP: i.IP, Port: i.Port, Cluster: i.Cluster, Service: grouped,
		Weight: i.Weight, Healthy: healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
		Metadata:            i.Metadata.JSON(),
		BeatIntervalMillis:  i.BeatInterval().Milliseconds(),
		BeatTimeoutMillis:   i.BeatTimeout().Milliseconds(),
		DeleteTimeoutMillis: i.DeleteTimeout().Milliseconds(),
		IDGenerator:         generator(i),
	}
	if !i.HideID {
		host.ID = i.AppendID(room[:0], grouped)
	}
	return grpcv2.AppendHost(b, &host)
}

// AppendAll appends a JSON array of instances with the health that they have,
// whatever a look-up would show under the protect threshold.
func AppendAll(b []byte, list []*registry.Instance, grouped string) []byte {
	b = append(b, '[')
	for n, i := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = Append(b, i, i.Healthy, grouped)
	}
	return append(b, ']')
}

// generator returns the ID generator that is shown of an instance: the one that its
// metadata names, or when there is no metadata at all the default.
func generator(i *registry.Instance) string {
	if i.Metadata == "" {
		return defaultIDGenerator
	}
	name, _ := i.Metadata.Get(registry.KeyIDGenerator)
	return name
}
