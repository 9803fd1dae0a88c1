//go:build unix

package httpapi

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// rawConn returns the socket of nc for non-blocking reads, or nil if nc is not a
// plain one.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// readNow reads what fd has, or returns errWouldBlock.
func readNow(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, errWouldBlock
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
