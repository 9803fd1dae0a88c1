package httpapi

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config is the settings of a Server. Start from DefaultConfig.
type Config struct {
	// ContextPath is the prefix under which every route is served, besides the
	// root. Clients of every Nacos version hard-code "/nacos". Empty: root only.
	ContextPath string `config:"http.context-path" value:"path" help:"Path under which every route is served besides the root; Nacos clients expect /nacos." unset:"root only"`

	// MaxHeaderBytes limits the request line and headers together (1 KiB to
	// 1 MiB). More is answered 431.
	MaxHeaderBytes int `config:"http.max-header" unit:"bytes" help:"Largest request line and headers together."`
	// MaxBodyBytes limits a request body, after chunk decoding (1 KiB to 1 GiB).
	// More is answered 413, before the body is read if its length is announced.
	MaxBodyBytes int `config:"http.max-body" unit:"bytes" help:"Largest request body."`
	// MaxBodyMemory limits the memory of all bodies over 64 KiB that are being
	// received or handled at once. A body beyond it is answered 503.
	MaxBodyMemory int64 `config:"http.max-body-memory" unit:"bytes" help:"Memory of all large request bodies in hand at once."`
	// MaxAnswerMemory limits the memory of all answers over 64 KiB that are being
	// written at once (1 MiB or more); what several of them share counts once. An
	// answer beyond it becomes a 503. An answer that is written as it is made does
	// not count: it takes 64 KiB.
	MaxAnswerMemory int64 `config:"http.max-answer-memory" unit:"bytes" help:"Memory of all large answers being written at once."`

	// HeaderTimeout is how long a request head may take from its first byte, and
	// a PROXY header or TLS handshake before it. It is answered 408.
	HeaderTimeout time.Duration `config:"http.header-timeout" help:"How long a request head may take from its first byte, and before it a PROXY header and a TLS handshake, gRPC's included."`
	// BodyTimeout is how much longer a body may take. It is answered 408.
	BodyTimeout time.Duration `config:"http.body-timeout" help:"How much longer a request body may take."`
	// WriteTimeout is how long a client may keep an answer from being written. It
	// is enforced between half of it and all of it.
	WriteTimeout time.Duration `config:"http.write-timeout" help:"How long a client may keep an answer from being written."`
	// IdleTimeout is how long a connection may wait for the first byte of a
	// request. It is enforced between half of it and all of it, because renewing
	// a timer for each request would cost more than the precision is worth.
	IdleTimeout time.Duration `config:"http.idle-timeout" help:"How long a connection may stay without a request; it is closed between half of this time and all of it."`
	// DrainTimeout is how long running requests may take once the server stops;
	// then their connections are closed.
	DrainTimeout time.Duration `config:"http.drain-timeout" help:"How long running requests may take once the server stops."`

	// MaxConns limits the connections served at once; 0 is no limit. One more is
	// answered 503 and closed.
	MaxConns int `config:"http.max-connections" help:"Most connections served at once; 0 is no limit." reload:"true"`
	// MaxConnsPerIP limits the connections of one client address, which behind
	// PROXY protocol is the address that the header names; 0 is no limit. One
	// more is answered 429 and closed.
	MaxConnsPerIP int `config:"http.max-connections-per-address" help:"Most connections of one client address; 0 is no limit." reload:"true"`

	// TrustedProxies are the ranges whose X-Forwarded-For, and PROXY header if
	// ProxyProtocol is set, are believed.
	TrustedProxies []netip.Prefix `config:"http.trusted-proxies" help:"Ranges of proxies whose X-Forwarded-For and PROXY headers are believed." unset:"nobody's"`
	// ProxyProtocol accepts a PROXY header (version 1 or 2) at the start of a
	// connection from TrustedProxies. Such a connection may also come without.
	ProxyProtocol bool `config:"http.proxy-protocol" help:"Whether trusted proxies may begin a connection with a PROXY header."`

	// GzipMinBytes is the smallest body that is compressed for a client which
	// accepts gzip; 0 never compresses.
	GzipMinBytes int `config:"http.gzip-min" unit:"bytes" help:"Smallest answer that is compressed for a client that accepts gzip; 0 never compresses."`
	// CORS lets pages of any origin read answers, as the original does.
	CORS bool `config:"http.cors" help:"Whether web pages of any origin may read answers, as with Nacos."`
}

// DefaultConfig returns the settings of a server without flags.
func DefaultConfig() Config {
	return Config{
		ContextPath:     "/nacos",
		MaxHeaderBytes:  64 << 10,
		MaxBodyBytes:    8 << 20,
		MaxBodyMemory:   256 << 20,
		MaxAnswerMemory: 256 << 20,
		HeaderTimeout:   10 * time.Second,
		BodyTimeout:     30 * time.Second,
		WriteTimeout:    30 * time.Second,
		IdleTimeout:     90 * time.Second,
		DrainTimeout:    15 * time.Second,
		MaxConns:        20_000,
		MaxConnsPerIP:   10_000,
		GzipMinBytes:    64 << 10,
		CORS:            true,
	}
}

// Validate returns every fault of c, joined, or nil. Each begins with the key of
// the setting.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, key string, value any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("http.%s: %v: give %s", key, value, want))
		}
	}
	check(c.ContextPath == "" || validPath(c.ContextPath), "context-path", c.ContextPath, "a path such as /nacos, or nothing")
	check(c.MaxHeaderBytes >= 1<<10 && c.MaxHeaderBytes <= 1<<20, "max-header", c.MaxHeaderBytes, "1KiB to 1MiB")
	check(c.MaxBodyBytes >= 1<<10 && c.MaxBodyBytes <= 1<<30, "max-body", c.MaxBodyBytes, "1KiB to 1GiB")
	check(c.MaxBodyMemory >= int64(c.MaxBodyBytes), "max-body-memory", c.MaxBodyMemory, "at least http.max-body")
	check(c.MaxAnswerMemory >= 1<<20, "max-answer-memory", c.MaxAnswerMemory, "1MiB or more")
	for _, timeout := range []struct {
		key   string
		value time.Duration
	}{
		{"header-timeout", c.HeaderTimeout},
		{"body-timeout", c.BodyTimeout},
		{"write-timeout", c.WriteTimeout},
		{"idle-timeout", c.IdleTimeout},
		{"drain-timeout", c.DrainTimeout},
	} {
		check(timeout.value > 0, timeout.key, timeout.value, "more than 0")
	}
	check(c.MaxConns >= 0, "max-connections", c.MaxConns, "0 or more")
	check(c.MaxConnsPerIP >= 0, "max-connections-per-address", c.MaxConnsPerIP, "0 or more")
	check(c.GzipMinBytes >= 0, "gzip-min", c.GzipMinBytes, "0 or more")
	check(!c.ProxyProtocol || len(c.TrustedProxies) > 0, "proxy-protocol", c.ProxyProtocol, "http.trusted-proxies too")
	for _, p := range c.TrustedProxies {
		check(p.IsValid(), "trusted-proxies", p, "ranges such as 10.0.0.0/8")
	}
	return errors.Join(faults...)
}

// validPath reports whether p is a clean absolute path without a trailing slash.
func validPath(p string) bool {
	return len(p) > 1 && p[0] == '/' && p[len(p)-1] != '/' && pathFault(p) == faultNone
}
