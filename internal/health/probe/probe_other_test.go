//go:build !linux

package probe

import (
	"net"
	"testing"
)

// fullListener is never called here: see full.
func fullListener(*testing.T) (*net.TCPAddr, func(net.Conn)) { return nil, nil }
