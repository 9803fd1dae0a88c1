package grpcmode

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

const (
	// agent is what the client calls itself. Over gRPC no server asks for a name that
	// it knows.
	agent = "Rollcall-Go-Client:v0.1.0"
	// negotiation is how long to wait for the abilities of a server that promised
	// them: that of Nacos clients.
	negotiation = 5 * time.Second
	// settle and settleMost are how often a server that promises nothing is asked
	// whether it knows the connection yet: it registers it in the background.
	settle     = 10 * time.Millisecond
	settleMost = 200 * time.Millisecond
)

// Limits of messages from servers, in bytes.
const (
	// maxMessage is what is taken: 50,000 instances, and no more than over HTTP. What
	// is larger is dropped, counted, and harms nobody else.
	maxMessage = 16 << 20
	// mostMessage is beyond what the connection is given up.
	mostMessage = 64 << 20
	// window is how much may be on its way. A fixed one spares the pings by which
	// grpc-go would find it out.
	window = 1 << 20
)

// dial connects to a server and registers the connection, with which it returns the
// abilities of the server. It takes at most the timeout for each of its steps.
func (t *Transport) dial(ctx context.Context, server servers.Server, h handler) (*conn, []string, error) {
	c := &conn{
		cfg: &t.cfg, server: server, address: server.GRPC(), handler: h,
		setup: make(chan []string, 1), ended: make(chan struct{}), begun: time.Now(),
	}
	if err := c.connect(ctx); err != nil {
		return nil, nil, because(ctx, err)
	}
	abilities, err := c.introduce(ctx)
	if err == nil {
		err = c.establish()
	}
	if err != nil {
		c.close()
		return nil, nil, because(ctx, err)
	}
	return c, abilities, nil
}

// because prefers the end of ctx to what followed from it.
func because(ctx context.Context, err error) error {
	if cause := interrupted(ctx); cause != nil {
		return cause
	}
	return err
}

// connect makes the socket, and of it a connection of grpc-go that never dials again.
func (c *conn) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errSlow{c.cfg.Timeout})
	defer cancel()
	dial := c.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	socket, err := dial(limited, "tcp", c.address)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return broken(c.address, err)
	}
	once := make(chan net.Conn, 1)
	once <- socket
	c.socket, c.localIP = socket, c.cfg.LocalIP
	if c.localIP == "" {
		c.localIP = hostOf(socket.LocalAddr())
	}
	c.client, err = grpc.NewClient("passthrough:///"+c.address, c.options(func(context.Context, string) (net.Conn, error) {
		select {
		case only := <-once:
			return only, nil
		default:
			return nil, errClosed
		}
	})...)
	if err != nil {
		_ = socket.Close()
		return broken(c.address, err)
	}
	return nil
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return ""
	}
	return host
}

func (c *conn) options(dial func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	creds := insecure.NewCredentials()
	if c.cfg.TLS != nil {
		creds = credentials.NewTLS(c.cfg.TLS)
	} else if c.server.Secure {
		creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	return []grpc.DialOption{
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(mostMessage), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	}
}

// introduce checks that the server is one and is ready, opens the stream and says who
// the client is.
func (c *conn) introduce(ctx context.Context) ([]string, error) {
	streaming, end := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = end
	limit := 2*c.cfg.Timeout + negotiation
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow{limit})
	defer cancel()
	defer context.AfterFunc(ctx, end)()
	a, err := c.ask(ctx, c.cfg.Timeout, c.payload(grpcv2.ServerCheck, grpcv2.AppendBare(nil), nil))
	switch {
	case err != nil:
		return nil, err
	case !a.OK():
		return nil, refusal(c.address, &a)
	}
	c.stream, err = c.client.NewStream(streaming, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
	if err != nil {
		return nil, broken(c.address, err)
	}
	setup := grpcv2.SetupRequest{ClientVersion: agent, Labels: c.cfg.labels(), Abilities: []string{grpcv2.AbilityFuzzyWatch}}
	if err := c.stream.SendMsg(c.payload(grpcv2.ConnectionSetup, setup.Append(nil), nil)); err != nil {
		return nil, broken(c.address, err)
	}
	c.running.Go(c.read)
	var abilities []string
	if a.Negotiates {
		if abilities, err = c.negotiate(ctx); err != nil {
			return nil, err
		}
	}
	if abilities == nil {
		err = c.settle(ctx)
	}
	return abilities, err
}

// negotiate waits for the abilities of the server; nil if it has none to tell.
func (c *conn) negotiate(ctx context.Context) ([]string, error) {
	timer := time.NewTimer(negotiation)
	defer timer.Stop()
	select {
	case abilities := <-c.setup:
		return abilities, nil
	case <-timer.C:
		return nil, nil
	case <-c.ended:
		return nil, c.over()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errUnsettled = errors.New("the server does not register the connection")

// settle waits until the server knows the connection.
func (c *conn) settle(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errUnsettled)
	defer cancel()
	for pause := settle; ; pause = min(2*pause, settleMost) {
		a, err := c.ask(limited, c.cfg.Timeout, c.payload(grpcv2.HealthCheck, grpcv2.AppendBare(nil), nil))
		switch {
		case errors.Is(err, errUnsettled):
			return &wire.Error{Kind: wire.NotConnected, Server: c.address, Err: err}
		case err != nil:
			return err
		case a.OK() || kindOf(&a) != wire.Unregistered:
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-c.ended:
			timer.Stop()
			return c.over()
		case <-limited.Done():
			timer.Stop()
			return broken(c.address, context.Cause(limited))
		}
	}
}
