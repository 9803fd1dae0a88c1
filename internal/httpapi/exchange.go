package httpapi

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// Memory that an exchange may keep for the next request, and the start of a
// request's own: a larger request pays for its memory and gives it back.
const (
	keepBytes  = 64 << 10
	startBytes = 1 << 10
)

// Exchange is one request and its answer. It belongs to the goroutine of its
// connection, and every string and slice that it returns lives until the handler
// returns.
type Exchange struct {
	// Scratch is memory for building an answer body:
	//	x.Scratch = append(x.Scratch[:0], …)
	//	x.JSON(200, x.Scratch)
	Scratch []byte

	conn      *conn
	route     *Route
	endpoint  *endpoint // nil: nothing has that path
	pathFault fault
	cors      bool // pages of other origins may read the answer
	head      head
	method    method

	path, query string // of the request target, as sent
	inner       string // path without context path and trailing slash, decoded
	inContext   bool   // path is below the context path
	vars        []pathVar

	body         []byte
	stream       *bodyStream // instead of body; nil for most
	params       Params
	paramsParsed bool
	client       netip.Addr

	answer answer
	out    []byte   // rendered answers not yet written
	after  []func() // to run once they are
}

type pathVar struct {
	name, value string
}

func newExchange() *Exchange {
	x := &Exchange{
		Scratch: make([]byte, 0, startBytes),
		head:    head{raw: make([]byte, 0, startBytes)},
		body:    make([]byte, 0, startBytes),
		out:     make([]byte, 0, startBytes),
	}
	x.head.reset()
	return x
}

// reset makes x ready for the next request. It keeps what is not yet written.
func (x *Exchange) reset() {
	if poison {
		x.poisonMemory()
	}
	x.route, x.endpoint, x.pathFault = nil, nil, faultNone
	x.head.reset()
	x.stream = nil
	x.path, x.query, x.inner, x.inContext, x.cors = "", "", "", false, false
	clear(x.vars)
	x.vars = x.vars[:0]
	x.params.reset()
	x.paramsParsed = false
	x.client = netip.Addr{}
	x.answer.reset()
	x.body = shrink(x.body)
	x.Scratch = shrink(x.Scratch)
}

// shrink empties b, and drops its memory if a large request grew it.
func shrink(b []byte) []byte {
	if cap(b) > keepBytes {
		return make([]byte, 0, startBytes)
	}
	return b[:0]
}

// poisonMemory overwrites what the handler has seen.
func (x *Exchange) poisonMemory() {
	if x.path == "" {
		return // no head was parsed
	}
	for _, b := range [][]byte{x.body, x.params.decoded, x.head.raw} {
		for i := range b {
			b[i] = 0xdb
		}
	}
}

// Method returns the request method as sent.
func (x *Exchange) Method() string {
	if int(x.method) < len(methodNames) {
		return methodNames[x.method]
	}
	return alias(x.head.part(x.head.method))
}

// Path returns the path of the request target as sent, with context path and
// escapes.
func (x *Exchange) Path() string { return x.path }

// Query returns the query of the request target as sent, without the "?".
func (x *Exchange) Query() string { return x.query }

// Target returns path and query as sent: what the prefixes of the switch
// limitedUrlMap are compared with. It allocates if there is a query.
func (x *Exchange) Target() string {
	if x.query == "" {
		return x.path
	}
	return x.path + "?" + x.query
}

// Route returns the route that serves the request.
func (x *Exchange) Route() *Route { return x.route }

// PathValue returns the decoded segment that {name} of the route's path matched.
func (x *Exchange) PathValue(name string) string {
	for _, v := range x.vars {
		if v.name == name {
			return v.value
		}
	}
	return ""
}

// matchPath compares the inner path with the segments of a route and keeps the
// values of the variable ones.
func (x *Exchange) matchPath(segments []string) bool {
	x.vars = x.vars[:0]
	rest, more := x.inner, true
	for _, want := range segments {
		if !more {
			return false
		}
		var got string
		got, rest, more = strings.Cut(rest, "/")
		if name, ok := strings.CutPrefix(want, "{"); ok && got != "" {
			x.vars = append(x.vars, pathVar{strings.TrimSuffix(name, "}"), got})
		} else if got != want {
			return false
		}
	}
	return !more
}

// Header returns the first value of a request header, or "".
func (x *Exchange) Header(name string) string { return alias(x.head.get(name)) }

// UserAgent returns how the client names itself, from User-Agent or Client-Version
// as [ParseAgent] chooses.
func (x *Exchange) UserAgent() string {
	return agentText(alias(x.head.get("User-Agent")), x.Header("Client-Version"))
}

// Agent returns what the client says it is.
func (x *Exchange) Agent() Agent { return ParseAgent(x.UserAgent(), "") }

// Body returns the request body after chunk decoding; nothing if the route has
// MaxBodyBytes, see [Exchange.BodyReader].
func (x *Exchange) Body() []byte { return x.body }

// Peer returns the address of the other end of the connection, or the one that a
// trusted PROXY header names. An IPv4 address is never in its IPv6 form. It
// allocates nothing.
func (x *Exchange) Peer() netip.AddrPort { return x.conn.peer }

// Client returns the address of the client: the peer's, or behind trusted proxies
// the last one of X-Forwarded-For that is not a trusted proxy.
func (x *Exchange) Client() netip.Addr {
	if !x.client.IsValid() {
		x.client = x.findClient()
	}
	return x.client
}

func (x *Exchange) findClient() netip.Addr {
	peer := x.conn.peer.Addr()
	if !x.conn.server.trusted(peer) {
		return peer
	}
	return x.conn.server.clientBehind(peer, x.head.all("X-Forwarded-For"))
}

// Received returns when the request was complete.
func (x *Exchange) Received() time.Time { return x.conn.received }

// Context returns a context that ends when the time to finish running requests
// is over at shutdown. A client that goes away does not end it.
func (x *Exchange) Context() context.Context { return x.conn.work }

// Draining is closed when the server begins to stop. A handler that waits for
// something to happen answers then.
func (x *Exchange) Draining() <-chan struct{} { return x.conn.draining }

// AfterWrite has f called, in order and on this connection's goroutine, once the
// answer has been handed to the network or that has failed. f must not block and
// must not use x.
func (x *Exchange) AfterWrite(f func()) { x.after = append(x.after, f) }

// CloseAfter closes the connection after this answer.
func (x *Exchange) CloseAfter() { x.answer.close = true }
