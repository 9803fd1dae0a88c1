//go:build !unix

package h2

import (
	"net"
	"syscall"
)

// rawConn returns nil: connections wait in calls of Read and Write here.
func rawConn(net.Conn) syscall.RawConn { return nil }

func readNow(int, []byte) (int, error) { return 0, errWouldBlock }

func writeNow(int, []byte) (int, error) { return 0, nil }
