package grpcapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// identity is what a client said of itself. Its texts are bounded, and shared
// between clients that say the same.
type identity struct {
	version string // such as Nacos-Java-Client:v2.5.1
	ip      string // its own address, as it knows it
	app     string
	module  string
	tenant  string
	labels  []label // sorted by name; see maxLabels
	// naming: the client may register and subscribe.
	naming bool
	// newer: the client has abilities of 3.x, and gets answers in that form.
	newer bool
}

type label struct{ name, value string }

// The largest message that clients take, in bytes: tonic's default, that of the
// SDKs for Java and Go, and what Python asks for. A larger one would break their
// stream again and again.
const (
	rustMessage   = 4 << 20
	otherMessage  = 10 << 20
	pythonMessage = 100 << 20
)

// maxMessage returns the largest message that the client takes, in bytes.
func (who *identity) maxMessage() int {
	switch {
	case strings.HasPrefix(who.version, "Nacos-Rust-Client"):
		return rustMessage
	case strings.HasPrefix(who.version, "Nacos-Python-Client"):
		return pythonMessage
	default:
		return otherMessage
	}
}

const (
	// maxText bounds each text of an identity, in bytes; more is cut off.
	maxText = 256
	// maxLabels and maxLabelText bound the labels of an identity and, in bytes, their
	// names and values together. SDKs send about five, of 200 bytes.
	maxLabels    = 64
	maxLabelText = 4 << 10
	// namingModule is the label of connections that may register and subscribe.
	namingModule = "naming"
	// configModule is the label of connections for configurations, whose fuzzy
	// watches are others than those of services.
	configModule = "config"
	// noApp is the application of clients that name none. Source: Nacos.
	noApp = "-"
)

// keep returns a text in memory that is shared with equal ones.
func keep(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return unique.Make(s).Value()
}

// identityOf returns what a client says of itself, and how many of its labels are left
// out because they are too many or too long.
func identityOf(s *grpcv2.Setup, clientIP string) (who *identity, dropped int) {
	who = &identity{
		version: keep(s.ClientVersion), ip: keep(clientIP), app: keep(s.Labels["AppName"]),
		module: keep(s.Labels["module"]), tenant: keep(s.Tenant), newer: s.Newer,
	}
	who.naming = who.module == namingModule
	if who.app == "" {
		who.app = noApp
	}
	room := maxLabelText
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		l := label{keep(name), keep(s.Labels[name])}
		size := len(l.name) + len(l.value)
		if len(who.labels) == maxLabels || size > room {
			dropped++
			continue
		}
		room -= size
		who.labels = append(who.labels, l)
	}
	return who, dropped
}

// Received implements transport.Frames: a client registers itself, or answers a
// request of the server. Everything else is ignored, as in the original.
func (f *frames) Received(p *grpcv2.Payload) {
	defer f.client.recovered("a frame", p)
	switch {
	case p.Type == grpcv2.ConnectionSetup:
		f.setup(p)
	case strings.HasSuffix(p.Type, "Response"):
		f.client.response(p)
	default:
		f.client.api.log.Debug("frame ignored", "client_id", f.client.id, "type", shorten(p.Type))
	}
}

// response takes a client's answer to a request of the server.
func (c *client) response(p *grpcv2.Payload) {
	if c.identity.Load() == nil {
		return
	}
	c.touch(c.api.core.Now())
	answer, err := grpcv2.DecodeResponse(p.Body)
	if err != nil {
		c.api.log.Debug("frame ignored", "client_id", c.id, "type", shorten(p.Type), "err", err)
		return
	}
	// The answer to SetupAckRequest has no ID.
	if id, err := strconv.ParseUint(answer.RequestID, 10, 64); err == nil {
		c.answered(id, answer.OK())
	}
}

// setup registers the client. A second setup changes nothing, but is
// acknowledged.
func (f *frames) setup(p *grpcv2.Payload) {
	c := f.client
	s, err := grpcv2.DecodeSetup(p.Body)
	if err != nil {
		c.api.log.Debug("frame ignored", "client_id", c.id, "type", p.Type, "err", err)
		return
	}
	if err := c.api.ready(); err != nil {
		c.conn.Close(transport.Status{Code: transport.Unavailable, Message: "the server is not ready: " + err.Error()})
		return
	}
	c.touch(c.api.core.Now())
	who, dropped := identityOf(&s, p.ClientIP)
	if c.register(who) && dropped > 0 {
		c.api.log.Warn("labels of a client are left out: there are too many, or they are too long",
			"client_id", c.id, "dropped", dropped, "kept", len(who.labels))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.setUp && !c.gone {
		f.setUp = true
		c.streams = append(c.streams, f)
	}
	if s.HasAbilities {
		f.acks++
	}
	f.stream.Wake()
}

// register registers the client, unless it is registered or has left, and reports
// whether it did.
func (c *client) register(who *identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.identity.Load() != nil {
		return false
	}
	if who.naming {
		c.api.core.Open(c.id)
	}
	c.identity.Store(who)
	return true
}

// ackSetup writes the acknowledgement of a setup, with what the server is able to
// do: nothing that it is not, as clients then expect it.
func (c *client) ackSetup(m *transport.Message) {
	m.Type, m.ClientIP = grpcv2.SetupAck, c.local
	if who := c.identity.Load(); who != nil && who.newer && who.module != configModule {
		m.Buf = grpcv2.AppendSetupAck(m.Buf, grpcv2.AbilityPersistent, grpcv2.AbilityFuzzyWatch)
		return
	}
	m.Buf = grpcv2.AppendSetupAck(m.Buf, grpcv2.AbilityPersistent)
}

// shorten cuts a text that goes into a log line.
func shorten(s string) string { return s[:min(len(s), 64)] }

// subscriberKey returns the identity of the client's subscription to a service.
func (c *client) subscriberKey(who *identity, clusters string) registry.SubscriberKey {
	return registry.SubscriberKey{Client: c.id, Addr: c.peer, Agent: who.version, Clusters: clusters}
}
