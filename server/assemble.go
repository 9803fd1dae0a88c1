package server

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/certs"
	"github.com/rollcall-registry/rollcall/internal/consensus"
	"github.com/rollcall-registry/rollcall/internal/grpcapi"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/h2"
	"github.com/rollcall-registry/rollcall/internal/health"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/foreign"
	"github.com/rollcall-registry/rollcall/internal/httpapi/legacy"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/ops"
	v1 "github.com/rollcall-registry/rollcall/internal/httpapi/v1"
	v2 "github.com/rollcall-registry/rollcall/internal/httpapi/v2"
	v3 "github.com/rollcall-registry/rollcall/internal/httpapi/v3"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/metrics"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/portmux"
	"github.com/rollcall-registry/rollcall/internal/push"
	"github.com/rollcall-registry/rollcall/internal/recovery"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
	"github.com/rollcall-registry/rollcall/internal/udppush"
)

// parts are what a running server consists of.
type parts struct {
	metrics *metrics.Metrics
	machine machine
	clock   *health.Clock
	gate    *naming.Gate
	store   *registry.Store
	log     *consensus.Log
	durable *durableLog
	ledger  *ledger.Ledger
	pushes  *pushHistory // nil when none is kept
	keeper  *recovery.Keeper
	core    *naming.Core
	members *naming.Alone
	encoder *naming.Encoder
	expirer *health.Expirer
	checker *health.Checker
	pusher  *push.Pusher
	udp     *udppush.Sender
	http    *httpapi.Server
	grpc    *grpcapi.API
	conns   *h2.Server
	certs   *certs.Files // nil without TLS, as is tls
	tls     *portmux.TLS
	crowded atomic.Uint64 // connections that were one too many to look at
}

// assemble makes the parts over an open data directory. It starts nothing.
//
// Events flow from the store through the gate to the history, the pusher, the
// parts that watch health, and the metrics. Commands flow from the front-ends
// through naming to the store, those of durable data through the durable log.
func (s *Server) assemble(dir *store.Dir) (*parts, error) {
	p := &parts{metrics: metrics.New(), machine: machine{metrics.NewMachine()}, gate: &naming.Gate{}, encoder: naming.NewEncoder(s.cfg.CacheBytes)}
	p.clock = health.NewClock(s.cfg.Health, s.log)
	p.members = naming.NewAlone(p.clock)
	p.store = registry.NewStore(s.cfg.Expiry, p.gate)
	if err := s.assembleStorage(p, dir); err != nil {
		return nil, err
	}
	p.core = naming.New(s.cfg.Limits, p.store, p.durable, p.clock, s.log)
	p.expirer = health.NewExpirer(p.core.Expire, s.log)
	p.checker = health.NewChecker(s.cfg.Health, p.store, p.core, s.log)
	p.pusher = push.New(s.cfg.Push, p.store, p.clock, pushObserver{p.metrics}, s.log)
	s.assembleGRPC(p)
	apis := s.assembleAPIs(p)
	p.udp = udppush.New(s.cfg.UDP, udppush.Parts{
		Store: p.store, Clock: p.clock, Payload: apis.payload, Later: p.pusher.Schedule,
		Observer: udpObserver{p.metrics}, History: p.pushes.sink(),
	}, s.log)
	p.pusher.Deliver(registry.ProtocolUDP, p.udp)
	p.gate.Sink = naming.Sinks{p.ledger, p.pusher, p.grpc, p.expirer, p.checker, eventCounter{p.metrics}}
	if err := s.assembleHTTP(p, apis); err != nil {
		return nil, err
	}
	if err := s.assembleTLS(p); err != nil {
		return nil, err
	}
	p.expose(dir)
	return p, nil
}

// assembleStorage makes the durable log, the history and the memory of ephemeral
// instances.
func (s *Server) assembleStorage(p *parts, dir *store.Dir) error {
	cfg := consensus.DefaultConfig(dir.Path("raft"), dir.ID())
	cfg.OnWrite = func(_ int, took time.Duration) { p.metrics.DurableWrite(took) }
	log, err := consensus.New(cfg, naming.NewMachine(p.store, p.clock), s.log)
	if err != nil {
		return err
	}
	p.log = log
	p.durable = &durableLog{log: log, store: p.store, slog: s.log.With("component", "server")}
	history := s.cfg.History
	history.Dir = dir.Path("history")
	if p.ledger, err = ledger.New(history, s.log); err != nil {
		return err
	}
	if s.cfg.RecordPushes {
		if p.pushes, err = newPushHistory(s.cfg.History, dir.Path("pushes"), s.log); err != nil {
			return err
		}
	}
	p.keeper = recovery.New(s.cfg.Recovery, dir.Path("ephemeral"), p.store, p.ledger, p.clock, s.log)
	return nil
}

// assembleGRPC makes the gRPC front-end and its transport.
func (s *Server) assembleGRPC(p *parts) {
	p.grpc = grpcapi.New(s.cfg.GRPC, grpcapi.Parts{
		Core: p.core, Encoder: p.encoder, Later: p.pusher.Schedule, Observer: grpcObserver{p.metrics},
		History: p.pushes.sink(), Ready: s.readiness, Log: s.log,
	})
	p.pusher.Deliver(registry.ProtocolGRPC, p.grpc)
	p.conns = h2.New(s.cfg.GRPCConn, p.grpc, s.log)
}

// apis are the front-ends over HTTP.
type apis struct {
	v1      *v1.API
	ops     *ops.API
	foreign *foreign.API
	legacy  *legacy.API
	v2      *v2.API
	v3      *v3.API
}

// payload returns what a packet tells a subscriber, in the form that it reads.
func (a *apis) payload(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte {
	if sub.Form == legacy.Form {
		return a.legacy.Payload(view, key, sub)
	}
	return a.v1.Payload(view, key, sub)
}

func (s *Server) assembleAPIs(p *parts) apis {
	a := apis{
		v1: v1.New(v1.Parts{
			Core: p.core, Encoder: p.encoder, Admit: p.admit, Pushes: udpCounter{p},
			Probes: probeTimer{p.checker}, Machine: p.machine, Members: p.members,
			Ready: s.readiness, Levels: s.levels, Log: s.log,
		}),
		ops: ops.New(ops.Config{
			Naming: p.core, Roster: naming.NewRoster(p.core, p.grpc, p.waiting),
			History: p.ledger, Pushes: p.pushes.reader(), Durable: p.durable, Ready: s.readiness,
			Metrics: p.metrics.Write, Log: s.log,
		}),
		foreign: foreign.New(foreign.Parts{Core: p.core, Servers: func() []string {
			var addresses []string
			for _, m := range p.members.Members() {
				addresses = append(addresses, m.Address())
			}
			return addresses
		}}),
	}
	a.legacy = s.assembleLegacy(p, a.v1)
	a.v2, a.v3 = s.assembleModern(p)
	return a
}

// assembleModern makes the HTTP APIs of 2.x and 3.x.
func (s *Server) assembleModern(p *parts) (*v2.API, *v3.API) {
	shared := modern.Parts{
		Core: p.core, Encoder: p.encoder, Members: p.members, Connections: p.grpc,
		Admit: p.admit,
		Load:  p.load,
		Ready: s.readiness, Levels: s.levels, Log: s.log,
	}
	return v2.New(shared), v3.New(shared)
}

// assembleLegacy makes the 0.9 API. Calls that 1.4.8 still has are answered by
// first, for clients that say they are of 1.0.0 or later.
func (s *Server) assembleLegacy(p *parts, first *v1.API) *legacy.API {
	return legacy.New(legacy.Parts{
		Core: p.core, Encoder: p.encoder, Admit: p.admit, Members: p.members, Log: s.log,
		ProbeTime: func(key registry.ServiceKey, cluster string) (best, worst, normalized int64) {
			rt := p.checker.RT(key, cluster)
			return rt.BestMillis, rt.WorstMillis, rt.NormalizedMillis
		},
		Load:   p.load,
		Shared: legacy.Shared{List: first.List, Beat: first.Beat, Hello: first.Hello, PushState: first.PushState},
	})
}

// assembleHTTP makes the HTTP server over the routes of all front-ends.
func (s *Server) assembleHTTP(p *parts, a apis) error {
	hooks := httpapi.Hooks{Observe: func(route *httpapi.Route, status int, took time.Duration) {
		p.metrics.Request(route.Path, status, took)
	}}
	groups := slices.Concat(a.v1.Groups(), a.v2.Groups(), a.v3.Groups(), a.ops.Groups())
	router, err := httpapi.NewRouter(s.cfg.HTTP.ContextPath, hooks, groups, a.v1.Routes(), a.legacy.Routes(),
		a.v2.Routes(), a.v3.Routes(), a.ops.Routes(), a.foreign.Routes())
	if err != nil {
		return err
	}
	p.http, err = httpapi.New(s.cfg.HTTP, router, s.log)
	return err
}
