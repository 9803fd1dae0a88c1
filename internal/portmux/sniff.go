package portmux

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"
)

// preface is how every client of HTTP/2 begins (RFC 9113, 3.4). Its first line
// tells it from every request of HTTP/1.1.
const preface = "PRI * HTTP/2.0\r\n"

// handshakeRecord is the first byte of every connection that speaks TLS (RFC 8446,
// 5.1).
const handshakeRecord = 0x16

// sniffer reads the beginning of a connection and keeps it.
type sniffer struct {
	net.Conn
	read []byte
}

// more reads what comes next.
func (s *sniffer) more() error {
	var room [64]byte
	n, err := s.Read(room[:])
	s.read = append(s.read, room[:n]...)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// wait waits for the first byte for at most idle, and sets the deadline for what
// follows.
func (s *sniffer) wait(ctx context.Context, idle, timeout time.Duration) error {
	if err := s.within(ctx, idle); err != nil {
		return err
	}
	if err := s.more(); err != nil {
		return err
	}
	return s.within(ctx, timeout)
}

// within sets the deadline. The end of ctx sets another one, which it must not
// take back.
func (s *sniffer) within(ctx context.Context, d time.Duration) error {
	if err := s.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	return ctx.Err()
}

// isTLS reports whether the connection begins with a handshake of TLS.
func (s *sniffer) isTLS() (bool, error) {
	for len(s.read) == 0 { // behind a PROXY header nothing may have come yet
		if err := s.more(); err != nil {
			return false, err
		}
	}
	return s.read[0] == handshakeRecord, nil
}

// protocol returns which one the connection begins with: HTTP/2 has a preface. It
// reads no further than it must.
func (s *sniffer) protocol() (string, error) {
	for {
		known := min(len(s.read), len(preface))
		if string(s.read[:known]) != preface[:known] {
			return protocolHTTP1, nil
		}
		if known == len(preface) {
			return protocolHTTP2, nil
		}
		if err := s.more(); err != nil {
			return "", err
		}
	}
}

// proxyHeader reads a PROXY header, if there is one, and returns the connection as
// one from the client that it names. What came behind it stays in s.
func (s *sniffer) proxyHeader() (net.Conn, error) {
	r := bufio.NewReader(&replay{Conn: s.Conn, prefix: s.read})
	header, err := proxyproto.Read(r)
	if err != nil && !errors.Is(err, proxyproto.ErrNoProxyProtocol) {
		return nil, err
	}
	rest, err := r.Peek(r.Buffered())
	if err != nil {
		return nil, err
	}
	s.read = bytes.Clone(rest)
	if header != nil && header.Command.IsProxy() {
		if client, ok := header.SourceAddr.(*net.TCPAddr); ok {
			return &behindProxy{s.Conn, client}, nil
		}
	}
	return s.Conn, nil
}

// behindProxy is a connection from a client behind a proxy.
type behindProxy struct {
	net.Conn
	client *net.TCPAddr
}

func (c *behindProxy) RemoteAddr() net.Addr { return c.client }

// SyscallConn shows the socket, where there is one: the header has been read, and
// nothing lies between.
func (c *behindProxy) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite ends the writing half, where the connection has halves.
func (c *behindProxy) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// replay is a connection whose first bytes have been read already.
type replay struct {
	net.Conn
	prefix []byte
}

func (c *replay) Read(p []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}
