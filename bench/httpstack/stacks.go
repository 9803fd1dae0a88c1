package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/valyala/fasthttp"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/portmux"
)

// stackEntry is one way to serve the do-nothing handler.
type stackEntry struct {
	name  string
	serve func(ln net.Listener) error
}

var stacks = []stackEntry{
	{"net/http", serveNetHTTP},
	{"fasthttp", serveFastHTTP(false)},
	{"fasthttp-reduce", serveFastHTTP(true)},
	{"httpapi", serveHTTPAPI(nothing)},
	{"httpapi-params", serveHTTPAPI(readParams)},
}

func stackNames() []string {
	var names []string
	for _, s := range stacks {
		names = append(names, s.name)
	}
	return names
}

// beatPath and beatAnswer are what a Java 1.4 client asks and gets every five
// seconds for each of its instances.
const beatPath = "/nacos/v1/ns/instance/beat"

var beatAnswer = []byte(`{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`)

func serveNetHTTP(ln net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+beatPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(beatAnswer)
	})
	return http.Serve(ln, mux)
}

// serveFastHTTP serves with fasthttp's own server, with or without its
// ReduceMemoryUsage, which gives buffers back while a connection is idle.
func serveFastHTTP(reduce bool) func(net.Listener) error {
	return func(ln net.Listener) error {
		server := &fasthttp.Server{
			ReduceMemoryUsage:  reduce,
			ReadBufferSize:     64 << 10, // the largest head
			ReadTimeout:        httpapi.DefaultConfig().HeaderTimeout,
			WriteTimeout:       httpapi.DefaultConfig().WriteTimeout,
			IdleTimeout:        httpapi.DefaultConfig().IdleTimeout,
			MaxRequestBodySize: httpapi.DefaultConfig().MaxBodyBytes,
			Handler: func(ctx *fasthttp.RequestCtx) {
				if string(ctx.Path()) == beatPath && ctx.IsPut() {
					ctx.SetContentType("application/json")
					ctx.SetBody(beatAnswer)
				}
			},
		}
		return server.Serve(ln)
	}
}

// serveHTTPAPI serves with our own package: its router, headers and limits.
func serveHTTPAPI(handler httpapi.Handler) func(net.Listener) error {
	return func(ln net.Listener) error {
		router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{},
			[]httpapi.Group{{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported}},
			[]httpapi.Route{{
				Methods: []string{"PUT"}, Path: "/v1/ns/instance/beat",
				Resource: httpapi.Naming, Action: httpapi.Write, Handler: handler,
			}})
		if err != nil {
			return err
		}
		cfg, log := httpapi.DefaultConfig(), slog.New(slog.NewTextHandler(os.Stderr, nil))
		server, err := httpapi.New(cfg, router, log)
		if err != nil {
			return err
		}
		port := portmux.Config{Timeout: cfg.HeaderTimeout, Idle: cfg.IdleTimeout, MaxPending: cfg.MaxConns}
		return portmux.New(port, portmux.Backends{HTTP: server.ServeConn}, log).Serve(context.Background(), ln)
	}
}

func nothing(x *httpapi.Exchange) { x.JSON(200, beatAnswer) }

// readParams also reads what a beat handler reads.
func readParams(x *httpapi.Exchange) {
	p := x.Params()
	for _, name := range [...]string{"serviceName", "beat"} {
		if _, err := p.Required(name); err != nil {
			x.RefuseParam(err)
			return
		}
	}
	if p.Optional("namespaceId", "public") == "" || p.Optional("clusterName", "DEFAULT") == "" || x.Agent().Kind == httpapi.UnknownAgent {
		x.Empty(500)
		return
	}
	x.JSON(200, beatAnswer)
}
