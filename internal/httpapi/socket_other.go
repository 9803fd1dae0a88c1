//go:build !unix

package httpapi

import (
	"net"
	"syscall"
)

// rawConn returns nil: idle connections keep their small reader here.
func rawConn(net.Conn) syscall.RawConn { return nil }

func readNow(int, []byte) (int, error) { return 0, errWouldBlock }
