package naming

import (
	"net/netip"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Connection is what is known of the client at the other end of a gRPC connection.
type Connection struct {
	ID   registry.ClientID
	Peer netip.AddrPort // where the connection comes from
	// IP, Version, App and Module are what the client says of itself; many clients
	// may share one peer address.
	IP, Version, App, Module string
	// Tenant is the namespace that the client names when it connects. Requests name
	// their own.
	Tenant string
	Labels map[string]string
	// Since and LastActive are in milliseconds since the epoch.
	Since, LastActive int64
	// Untold is of how many services the client has not acknowledged the newest
	// state, Lag for how long the oldest of their changes has been waiting; 0 when
	// it knows them all.
	Untold int
	Lag    time.Duration
}
