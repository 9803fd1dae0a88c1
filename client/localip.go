package rollcall

import (
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/client/internal/servers"
)

// LocalIP returns the address of this machine under which to register instances: that
// of [WithLocalIP], or the one from which the routing table has the servers reached.
// Nothing is sent but what it takes to resolve names. A client of package clienttest
// gets the loopback address.
func (c *Client) LocalIP(ctx context.Context) (string, error) {
	switch {
	case c.cfg.localIP != "":
		return c.cfg.localIP, nil
	case c.servers == nil:
		return "127.0.0.1", nil
	}
	round := c.servers.Round()
	if len(round) == 0 { // nobody has asked for the list yet
		if err := c.servers.Refresh(ctx); err != nil {
			return "", opError("local address", Service{}, err)
		}
		round = c.servers.Round()
	}
	last := ErrNoServers
	for _, s := range round {
		ip, err := servers.LocalIP(ctx, s)
		if err == nil {
			return ip, nil
		}
		last = err
	}
	return "", opError("local address", Service{}, fmt.Errorf("%w; see WithLocalIP", last))
}
