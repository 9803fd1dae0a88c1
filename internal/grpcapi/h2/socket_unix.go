//go:build unix

package h2

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// rawConn returns the socket of nc for calls that do not wait, or nil if nc is not
// a plain one.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
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
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// writeNow writes as much as fd takes now.
func writeNow(fd int, p []byte) (n int, err error) {
	for n < len(p) {
		written, err := syscall.Write(fd, p[n:])
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return n, nil
		case err != nil:
			return n, err
		default:
			n += written
		}
	}
	return n, nil
}
