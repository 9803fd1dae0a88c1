package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// checkBind refuses to open a registry without authentication to other machines
// unless the operator said so. auth is on, off, or empty when nothing was said.
func checkBind(auth string, addresses []string) error {
	switch auth {
	case "on":
		return errors.New("auth: on is not possible, this version has no authentication; " +
			"listen on loopback only, or say --auth=off to let everyone who can reach the server read and change the registry")
	case "off":
		return nil
	}
	for _, address := range addresses {
		if !isLoopback(address) {
			return fmt.Errorf("listen: %s can be reached from other machines and this version has no authentication; "+
				"say --auth=off to let everyone who can reach it read and change the registry, or listen on 127.0.0.1", address)
		}
	}
	return nil
}

// isLoopback reports whether host:port can be reached from this machine only.
// A host name other than localhost counts as reachable, whatever it resolves to.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
