package rollcall

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// LocalIP returns the address of this machine under which to register instances: that
// of [WithLocalIP], or the one from which the routing table has the servers reached,
// first of all the present one. Nothing is sent but what it takes to resolve names. A
// client of package clienttest gets the loopback address.
func (c *Client) LocalIP(ctx context.Context) (string, error) {
	switch {
	case c.cfg.localIP != "":
		return c.cfg.localIP, nil
	case c.servers == nil:
		return "127.0.0.1", nil
	}
	var addresses []string
	if l := c.link.Load(); l != nil {
		addresses = append(addresses, l.session.Server)
	}
	if len(c.servers.Round()) == 0 { // nobody has asked for the list yet
		if err := c.guard("server source", func() error { return c.servers.Refresh(ctx) }); err != nil {
			return "", opError("local address", Service{}, err)
		}
	}
	for _, s := range c.servers.Round() {
		addresses = append(addresses, s.HTTP())
	}
	last := ErrNoServers
	for _, address := range addresses {
		ip, err := routeTo(ctx, address)
		if err == nil {
			return ip, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return "", opError("local address", Service{}, fmt.Errorf("%w; see WithLocalIP", last))
}

// routeTo returns the local address of a socket to an address. Connecting a socket of
// UDP sends nothing.
func routeTo(ctx context.Context, address string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return "", errors.New("a socket of UDP without an address")
	}
	return local.IP.String(), nil
}
