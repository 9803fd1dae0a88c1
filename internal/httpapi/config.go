package httpapi

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config is the settings of a Server. Start from DefaultConfig; a zero value of
// a field means what the field says.
type Config struct {
	// ContextPath is the prefix under which every route is served, besides the
	// root. Clients of every Nacos version hard-code "/nacos". Empty: root only.
	ContextPath string

	// MaxHeaderBytes limits the request line and headers together, in bytes
	// (1 KiB to 1 MiB). More is answered 431.
	MaxHeaderBytes int
	// MaxBodyBytes limits a request body, after chunk decoding, in bytes.
	// More is answered 413, before the body is read if its length is announced.
	MaxBodyBytes int
	// MaxBodyMemory limits the memory of all bodies over 64 KiB that are being
	// received or handled at once, in bytes. A body beyond it is answered 503.
	MaxBodyMemory int64

	// HeaderTimeout is how long a request head may take from its first byte.
	HeaderTimeout time.Duration
	// BodyTimeout is how long a body may take from the end of its head.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may keep an answer from being written.
	// It is enforced between half of it and all of it.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may wait for the first byte of a
	// request. It is enforced between half of it and all of it, because renewing
	// a timer for each request would cost more than the precision is worth.
	IdleTimeout time.Duration
	// DrainTimeout is how long running requests may take once the server stops;
	// then their connections are closed.
	DrainTimeout time.Duration

	// MaxConns limits the connections served at once; 0 is no limit. One more is
	// answered 503 and closed.
	MaxConns int
	// MaxConnsPerIP limits the connections of one client address, which behind
	// PROXY protocol is the address that the header names; 0 is no limit. One
	// more is answered 429 and closed.
	MaxConnsPerIP int

	// TrustedProxies are the ranges whose X-Forwarded-For, and PROXY header if
	// ProxyProtocol is set, are believed. Empty: nobody's.
	TrustedProxies []netip.Prefix
	// ProxyProtocol accepts a PROXY header (version 1 or 2) at the start of a
	// connection from TrustedProxies. Such a connection may also come without.
	ProxyProtocol bool

	// GzipMinBytes is the smallest body that is compressed for a client which
	// accepts gzip, in bytes; 0 never compresses.
	GzipMinBytes int
	// DisableCORS leaves out the Access-Control headers that let pages of any
	// origin read answers, as the original does.
	DisableCORS bool

	// TLS makes Serve speak TLS; nil is plain text.
	TLS *Certificate
}

// DefaultConfig returns the settings of a server without flags.
func DefaultConfig() Config {
	return Config{
		ContextPath:    "/nacos",
		MaxHeaderBytes: 64 << 10,
		MaxBodyBytes:   8 << 20,
		MaxBodyMemory:  256 << 20,
		HeaderTimeout:  10 * time.Second,
		BodyTimeout:    30 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    90 * time.Second,
		DrainTimeout:   15 * time.Second,
		MaxConns:       20_000,
		MaxConnsPerIP:  10_000,
		GzipMinBytes:   64 << 10,
	}
}

// Validate returns every fault of c, joined, or nil.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.ContextPath == "" || validPath(c.ContextPath), "context path %q: want a path such as /nacos", c.ContextPath)
	check(c.MaxHeaderBytes >= 1<<10 && c.MaxHeaderBytes <= 1<<20, "max header bytes %d: want 1024 to 1048576", c.MaxHeaderBytes)
	check(c.MaxBodyBytes >= 1<<10 && c.MaxBodyBytes <= 1<<30, "max body bytes %d: want 1024 to 1073741824", c.MaxBodyBytes)
	check(c.MaxBodyMemory >= int64(c.MaxBodyBytes), "max body memory %d: want at least max body bytes, %d", c.MaxBodyMemory, c.MaxBodyBytes)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"header timeout", c.HeaderTimeout},
		{"body timeout", c.BodyTimeout},
		{"write timeout", c.WriteTimeout},
		{"idle timeout", c.IdleTimeout},
		{"drain timeout", c.DrainTimeout},
	} {
		check(d.value > 0, "%s %v: want more than 0", d.name, d.value)
	}
	check(c.MaxConns >= 0, "max connections %d: want 0 or more", c.MaxConns)
	check(c.MaxConnsPerIP >= 0, "max connections per address %d: want 0 or more", c.MaxConnsPerIP)
	check(c.GzipMinBytes >= 0, "gzip minimum %d: want 0 or more", c.GzipMinBytes)
	check(!c.ProxyProtocol || len(c.TrustedProxies) > 0, "PROXY protocol: name the trusted proxies")
	for _, p := range c.TrustedProxies {
		check(p.IsValid(), "trusted proxies: %v is not a range", p)
	}
	return errors.Join(faults...)
}

// validPath reports whether p is a clean absolute path without a trailing slash.
func validPath(p string) bool {
	return len(p) > 1 && p[0] == '/' && p[len(p)-1] != '/' && pathFault(p) == faultNone
}
