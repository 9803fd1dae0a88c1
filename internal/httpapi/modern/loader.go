package modern

import (
	"math"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// AppendConnections appends all connections by their ID.
func (a *API) AppendConnections(b []byte) []byte {
	b = append(b, '{')
	for n, c := range a.Connections.Connections() {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, string(c.ID))
		b = appendConnection(append(b, ':'), c)
	}
	return append(b, '}')
}

// appendConnection appends a connection as the original shows it.
func appendConnection(b []byte, c naming.Connection) []byte {
	b = append(b, `{"traced":false,"connected":true,"labels":`...)
	b = appendLabels(b, c.Labels)
	b = append(b, `,"metaInfo":{"connectType":"GRPC"`...)
	b = AppendText(b, "clientIp", c.IP)
	b = AppendText(b, "remoteIp", c.Peer.Addr().String())
	b = append(b, `,"remotePort":`...)
	b = strconv.AppendInt(b, int64(c.Peer.Port()), 10)
	b = AppendText(b, "version", c.Version)
	b = AppendText(b, "connectionId", string(c.ID))
	b = AppendText(b, "createTime", time.UnixMilli(c.Since).UTC().Format("2006-01-02T15:04:05.000+00:00"))
	b = append(b, `,"lastActiveTime":`...)
	b = strconv.AppendInt(b, c.LastActive, 10)
	b = AppendText(b, "appName", c.App)
	b = AppendText(b, "tenant", c.Tenant)
	b = append(b, `,"labels":`...)
	b = appendLabels(b, c.Labels)
	return append(b, "}}"...)
}

func appendLabels(b []byte, labels map[string]string) []byte {
	return registry.NewMetadata(labels).AppendJSON(b)
}

// Burden is how much this server has to do, as the views of the loader show it.
type Burden struct {
	Address      string
	Connections  int
	CPU, Average float64
}

// Burden returns the burden of this server.
func (a *API) Burden() Burden {
	cpu, average, _ := a.Load()
	return Burden{a.Members.Self().Address(), len(a.Connections.Connections()), finite(cpu), finite(average)}
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// overload is how far above the average the threshold lies. Source: Nacos
// ServerLoaderController.
const overload = 1.1

// Threshold is the number of connections above which a server is overloaded, when
// all have as many as this one.
func (b Burden) Threshold() float64 { return float64(b.Connections) * overload }

// ShedTo asks as many clients to go as are above a number of connections.
func (a *API) ShedTo(count int, redirect string) {
	if count > 0 { // live 2.5.1: 0 does nothing
		a.Connections.Shed(count, redirect)
	}
}

// ResetClient asks the client of one connection to go. Nobody is told when there is
// no such connection.
func (a *API) ResetClient(x *httpapi.Exchange, id, redirect string) {
	a.Connections.Reset(x.Context(), registry.ClientID(id), redirect)
}
