package rpc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// Dialer connects to one server.
type Dialer struct {
	// Address is host:port.
	Address string
	// Timeout bounds connecting and each call.
	Timeout time.Duration
	// TLS is how to connect by TLS; nil for clear text.
	TLS *tls.Config

	blocks headerBlocks
}

// NewDialer returns a dialer for a server, which speaks TLS if secure is not nil.
func NewDialer(address string, timeout time.Duration, secure *tls.Config) *Dialer {
	scheme := "http"
	if secure != nil {
		scheme = "https"
		secure = secure.Clone()
		secure.NextProtos = []string{http2.NextProtoTLS}
	}
	return &Dialer{Address: address, Timeout: timeout, TLS: secure, blocks: encodeHeaders(scheme, address)}
}

// errNoHTTP2 says that the server did not agree to HTTP/2, without which there is no
// gRPC. Source: RFC 9113 3.2.
var errNoHTTP2 = errors.New("the server speaks TLS, but did not agree to HTTP/2 (ALPN h2)")

// connect connects, and shakes hands if there is TLS.
func (d *Dialer) connect(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: d.Timeout}
	if d.TLS == nil {
		return dialer.DialContext(ctx, "tcp", d.Address)
	}
	nc, err := (&tls.Dialer{NetDialer: dialer, Config: d.TLS}).DialContext(ctx, "tcp", d.Address)
	if err != nil {
		return nil, err
	}
	if nc.(*tls.Conn).ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		_ = nc.Close()
		return nil, errNoHTTP2
	}
	return nc, nil
}

// Handler hears what the server sends on the stream. Both functions are called by
// the one goroutine of the connection, and must not call it except for
// [Conn.Send]. They may be nil.
type Handler struct {
	// Message gets each message, which is valid until it returns.
	Message func(c *Conn, message []byte)
	// Closed is called once, when the connection has ended for whatever reason.
	Closed func(err error)
}

// headerBlocks are the encoded headers of requests, the same for all connections:
// each sends the stream's first, then a unary call's, whose entries the dynamic table
// of the server then has, so that all further calls name them by their numbers.
type headerBlocks struct {
	stream, firstCall, nextCall []byte
	// plainCall needs no table, for servers that want none.
	plainCall []byte
}

func encodeHeaders(scheme, authority string) headerBlocks {
	var out bytes.Buffer
	encode := func(e *hpack.Encoder, service, method string) []byte {
		out.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: scheme},
			{Name: ":path", Value: "/" + service + "/" + method},
			{Name: ":authority", Value: authority},
			{Name: "content-type", Value: "application/grpc"},
			{Name: "te", Value: "trailers"},
			{Name: "user-agent", Value: "grpc-rollcall-bench"},
		} {
			_ = e.WriteField(f) // into memory
		}
		return bytes.Clone(out.Bytes())
	}
	var b headerBlocks
	table := hpack.NewEncoder(&out)
	b.stream = encode(table, grpcv2.StreamService, grpcv2.StreamMethod)
	b.firstCall = encode(table, grpcv2.UnaryService, grpcv2.UnaryMethod)
	b.nextCall = encode(table, grpcv2.UnaryService, grpcv2.UnaryMethod)
	plain := hpack.NewEncoder(&out)
	plain.SetMaxDynamicTableSizeLimit(0) // says so in the block
	b.plainCall = encode(plain, grpcv2.UnaryService, grpcv2.UnaryMethod)
	return b
}

const (
	// receiveWindow is how much the server may send before it is told to go on: an
	// answer to a call is never larger, so that only the connection and the stream
	// need updates, after half of it.
	receiveWindow = 16 << 20
	// defaultWindow, defaultFrame and defaultTable are what a server allows until it
	// says otherwise. Source: RFC 9113 6.5.2.
	defaultWindow = 65535
	defaultFrame  = 16 << 10
	defaultTable  = 4 << 10

	streamID  = 1
	firstCall = 3
)

// Dial connects and opens the stream. Nothing has been heard of the server when it
// returns. The connection ends with ctx.
func (d *Dialer) Dial(ctx context.Context, h Handler) (*Conn, error) {
	nc, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		nc: nc, blocks: &d.blocks, timeout: d.Timeout, handler: h,
		in:     bufio.NewReaderSize(nc, readBuffer),
		window: defaultWindow, streamWindow: defaultWindow, initialWindow: defaultWindow, maxFrame: defaultFrame,
		nextID: firstCall, answered: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	c.room.L = &c.mu
	c.timer = time.NewTimer(time.Hour)
	c.timer.Stop()
	c.headers = hpack.NewDecoder(defaultTable, c.header)
	c.mu.Lock()
	c.out = append(c.out, http2.ClientPreface...)
	c.out = appendSettings(c.out,
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: receiveWindow})
	c.out = appendWindowUpdate(c.out, 0, receiveWindow-defaultWindow)
	c.out = appendFrame(c.out, http2.FrameHeaders, http2.FlagHeadersEndHeaders, streamID, c.blocks.stream)
	err = c.flush()
	c.mu.Unlock()
	if err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	c.stop = context.AfterFunc(ctx, c.Abort)
	go c.read()
	return c, nil
}

// Conn is a connection with its stream.
type Conn struct {
	nc      net.Conn
	blocks  *headerBlocks
	timeout time.Duration
	handler Handler
	stop    func() bool
	ended   chan struct{}         // closed when the reader has ended
	aborted atomic.Pointer[error] // why the connection was closed; nil if it was not

	// callMu is held for the whole of a call.
	callMu   sync.Mutex
	answered chan struct{} // capacity 1: the call has ended
	timer    *time.Timer

	mu            sync.Mutex // also held while writing
	room          sync.Cond  // there is more window, or the connection has failed
	out           []byte
	window        int64 // what may be sent on the connection,
	streamWindow  int64 // on the stream,
	callWindow    int64 // on the call that is under way,
	initialWindow int64 // and on a new one
	maxFrame      int
	plain         bool // the server wants no header table
	nextID        uint32
	failure       error // why the connection ended
	call          call
	backlog       []byte // acknowledgements that wait for window, framed as messages

	// The rest is the reader's.
	in             *bufio.Reader
	frame          []byte
	message        []byte // of the stream, as far as it has come
	headers        *hpack.Decoder
	heard          headersHeard
	toReturn       int64 // bytes received on the connection that the server was not told of
	streamToReturn int64
}

// call is the unary call that is under way; its id is 0 when there is none.
type call struct {
	id     uint32
	answer []byte
	err    error
	done   bool
}
