package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/portmux"
)

// The stacks of the servers that do nothing.
const (
	stackOurs = "httpapi"
	stackFast = "fasthttp"
	stackGRPC = "grpc-go"
)

// answers are copies of one answer, given in turn. A registry has as many of them in
// memory as it has services, most of it in no cache of the processor, and fetching
// one from there is a part of sending it that no server can leave out.
type answers struct {
	copies [][]byte
	given  atomic.Uint64
}

func newAnswers(body []byte, copies int) *answers {
	a := &answers{}
	for range copies {
		a.copies = append(a.copies, bytes.Clone(body))
	}
	return a
}

func (a *answers) next() []byte { return a.copies[a.given.Add(1)%uint64(len(a.copies))] }

// serveNothing answers every request with one of so many copies of a file until ctx
// ends. It prints the line that a server prints when it is ready.
func serveNothing(ctx context.Context, stack, bodyFile string, copies int) error {
	text, err := os.ReadFile(bodyFile)
	if err != nil {
		return err
	}
	body := newAnswers(text, max(copies, 1))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ready http=%s\n", ln.Addr())
	switch stack {
	case stackOurs:
		return serveOurs(ctx, ln, body)
	case stackFast:
		return serveFast(ln, body)
	case stackGRPC:
		return serveGRPC(ln, body)
	default:
		return fmt.Errorf("unknown stack %q", stack)
	}
}

// serveOurs serves with our own package: its limits, router and headers, without
// parameters, metrics and whatever a handler does.
func serveOurs(ctx context.Context, ln net.Listener, body *answers) error {
	nothing := func(x *httpapi.Exchange) { x.JSON(200, body.next()) }
	var routes []httpapi.Route
	for path, methods := range map[string][]string{
		"/v1/ns/instance":      {"POST", "DELETE"},
		"/v1/ns/instance/beat": {"PUT"},
		"/v1/ns/instance/list": {"GET"},
	} {
		routes = append(routes, httpapi.Route{
			Methods: methods, Path: path, Resource: httpapi.Naming, Action: httpapi.Write, Handler: nothing,
		})
	}
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{},
		[]httpapi.Group{{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported}}, routes)
	if err != nil {
		return err
	}
	cfg, log := httpapi.DefaultConfig(), slog.New(slog.NewTextHandler(os.Stderr, nil))
	server, err := httpapi.New(cfg, router, log)
	if err != nil {
		return err
	}
	port := portmux.Config{Timeout: cfg.HeaderTimeout, Idle: cfg.IdleTimeout, MaxPending: cfg.MaxConns}
	return portmux.New(port, portmux.Backends{HTTP: server.ServeConn}, log).Serve(ctx, ln)
}

// serveFast serves with fasthttp's own server, its settings as they come. It ends
// with its process.
func serveFast(ln net.Listener, body *answers) error {
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.SetBody(body.next())
	}}
	return server.Serve(ln)
}

// serveGRPC serves with a bare grpc-go server: calls are answered with body, which is
// an encoded message, and streams are read. It ends with its process.
func serveGRPC(ln net.Listener, body *answers) error {
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(s)
		for {
			var request mem.BufferSlice
			if err := s.RecvMsg(&request); err != nil {
				return err
			}
			request.Free()
			if strings.HasSuffix(method, grpcv2.UnaryMethod) {
				return s.SendMsg(body.next())
			}
		}
	}))
	return server.Serve(ln)
}

// rawCodec moves messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	*v.(*mem.BufferSlice) = data
	return nil
}
