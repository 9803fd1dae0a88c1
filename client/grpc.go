package rollcall

import (
	"github.com/rollcall-registry/rollcall/client/internal/grpcmode"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// overGRPC returns a transport over gRPC.
func (c *Client) overGRPC() wire.Transport {
	return grpcmode.New(grpcmode.Config{
		Servers: c.servers, Auth: c.auth, Backoff: c.cfg.backoff, Timeout: c.cfg.timeout, Logger: c.logger,
		TLS: c.cfg.tls, Dial: c.cfg.dial, AppName: c.cfg.appName, Labels: c.cfg.labels, LocalIP: c.cfg.localIP,
	})
}
