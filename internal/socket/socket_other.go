//go:build !unix

package socket

import (
	"net"
	"syscall"
)

// Raw returns nil: connections wait in calls of Read and Write here.
func Raw(net.Conn) syscall.RawConn { return nil }

// ReadNow is not called, for lack of a socket.
func ReadNow(int, []byte) (int, error) { return 0, ErrWouldBlock }

// WriteNow is not called, for lack of a socket.
func WriteNow(int, []byte) (int, error) { return 0, nil }
