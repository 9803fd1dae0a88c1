package v1

import (
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/foreign"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// figures are the parts that only tell something, with answers of a test's own.
type figures struct {
	push   PushState
	resets int
	ready  error
	level  slog.LevelVar
}

func (f *figures) PushState(most int) PushState {
	st := f.push
	st.Unacked = st.Unacked[:min(most, len(st.Unacked))]
	return st
}

func (f *figures) ResetPushState() { f.resets++ }

// ProbeTime returns what package health returns before the first probe.
func (f *figures) ProbeTime(registry.ServiceKey, string) ProbeTime {
	return ProbeTime{Best: 1<<63 - 1, Normalized: 4419}
}

func (f *figures) Load() MachineLoad { return MachineLoad{CPU: 0.25, Average: 1.5, Memory: 0.5} }

// members are two, of which the first is this server.
type members []naming.Member

func (m members) Self() naming.Member      { return m[0] }
func (m members) Members() []naming.Member { return append(members(nil), m...) }

func twoMembers() members {
	return members{
		{Host: "10.0.0.1", Port: 8848, State: naming.MemberUp, Seen: 1700000000000},
		{Host: "10.0.0.2", Port: 8848, State: "SUSPICIOUS", Seen: 1700000000001, Failures: 3},
	}
}

// testHTTP serves the routes of the API as a server does, with what else a whole
// recording asks for.
func testHTTP(t testing.TB, api *API, more ...httpapi.Route) *httpapi.Server {
	t.Helper()
	others := foreign.New(foreign.Parts{Core: api.core, Servers: func() []string { return []string{"127.0.0.1:8848"} }})
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, api.Groups(), api.Routes(), others.Routes(), more)
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(httpapi.DefaultConfig(), router, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return server
}
