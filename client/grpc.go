package rollcall

import "github.com/rollcall-registry/rollcall/client/internal/wire"

// newGRPC returns a transport over gRPC.
func (c *Client) newGRPC() wire.Transport { return c.newHTTP() }
