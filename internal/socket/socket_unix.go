//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// Raw returns the socket of nc for calls that do not wait, or nil if nc is not a
// plain one, as within TLS. Nothing that nc has read ahead may be left in it.
func Raw(nc net.Conn) syscall.RawConn {
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

// ReadNow reads into p what fd has, or returns [ErrWouldBlock]. At the end it returns
// io.EOF.
func ReadNow(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, ErrWouldBlock
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// WriteNow writes as much of p as fd takes now and returns how much that is, which is
// no error when it is less than all.
func WriteNow(fd int, p []byte) (n int, err error) {
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
