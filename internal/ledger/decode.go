package ledger

import (
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

var errNoRecord = errors.New("no record")

// parseRecord reads a line without its newline. It does not check the checksum;
// see [intact]. Members that it does not know, or whose value has another type
// than it expects, are ignored.
func parseRecord(line []byte) (Record, error) {
	h, ok := parseHead(line)
	if !ok {
		return Record{}, errNoRecord
	}
	rec := Record{Seq: h.seq}
	e := &rec.Event
	e.At.Wall = h.at
	m := membersOf(string(line)) // one copy, which all texts of the record share
	for m.next() {
		switch m.key {
		case fieldKind:
			e.Kind = registry.EventKind(m.text())
		case fieldNamespace:
			e.Service.Namespace = m.text()
		case fieldGroup:
			e.Service.Group = m.text()
		case fieldService:
			e.Service.Name = m.text()
		case fieldCluster, fieldIP, fieldPort, fieldEphemeral, fieldHealthy, fieldWeight, fieldEnabled,
			fieldMarked, fieldHideID, fieldSerial, fieldOwnID, fieldUncluster, fieldApp, fieldMetadata:
			if e.Instance == nil {
				e.Instance = new(registry.Instance)
			}
			parseInstance(e.Instance, &m)
		case fieldBase:
			e.Base = parseBase(e.Instance, &m)
		case fieldOwner:
			e.Owner.Kind = parseOwner(m.text())
		case fieldClient:
			e.Owner.Client = registry.ClientID(m.text())
		case fieldRevision:
			e.Revision = m.integer()
		case fieldSubscriber, fieldSubscriberProtocol, fieldSubscriberClient, fieldSubscriberAgent, fieldSubscriberClusters:
			if e.Subscriber == nil {
				e.Subscriber = new(registry.Subscriber)
			}
			parseSubscriber(e.Subscriber, &m)
		case fieldTook:
			e.Took = microseconds(m.integer())
		case fieldDetail:
			e.Detail = m.text()
		case fieldCount:
			rec.Count = uint64(max(m.integer(), 0))
		default:
			parseCause(&e.Cause, &m)
		}
	}
	if m.bad {
		return Record{}, errNoRecord
	}
	return rec, nil
}

func parseInstance(i *registry.Instance, m *members) {
	switch m.key {
	case fieldCluster:
		i.Cluster = m.text()
	case fieldIP:
		i.IP = m.text()
	case fieldPort:
		i.Port = m.integer32()
	case fieldEphemeral:
		i.Ephemeral = m.flag()
	case fieldHealthy:
		i.Healthy = m.flag()
	case fieldWeight:
		i.Weight = m.float()
	case fieldEnabled:
		i.Enabled = m.flag()
	case fieldMarked:
		i.Marked = m.flag()
	case fieldHideID:
		i.HideID = m.flag()
	case fieldSerial:
		i.Serial = m.integer32()
	case fieldOwnID:
		i.Rare = &registry.Rare{ID: m.text()}
	case fieldUncluster:
		i.Unclustered = registry.Unclustered(m.integer32())
	case fieldApp:
		i.App = m.text()
	case fieldMetadata:
		i.Metadata = parseMetadata(m.raw)
	}
}

// parseBase reads what the owner of i registered. The encoder writes it after the
// members of i.
func parseBase(i *registry.Instance, m *members) *registry.Instance {
	if i == nil || m.flag() {
		return i
	}
	base := *i
	base.Weight, base.Enabled, base.App, base.Metadata = 0, false, "", ""
	for m := membersOf(m.raw); m.next(); {
		parseInstance(&base, &m)
	}
	return &base
}

func parseSubscriber(s *registry.Subscriber, m *members) {
	switch m.key {
	case fieldSubscriber:
		if a, err := netip.ParseAddrPort(m.text()); err == nil {
			s.Addr = a
		}
	case fieldSubscriberProtocol:
		s.Protocol = registry.Protocol(m.text())
	case fieldSubscriberClient:
		s.Client = registry.ClientID(m.text())
	case fieldSubscriberAgent:
		s.Agent = m.text()
	case fieldSubscriberClusters:
		s.Clusters = m.text()
	}
}

// microseconds returns a duration; what is too long for one is none.
func microseconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Microsecond)
	if n > most || n < -most {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

func parseCause(c *registry.Cause, m *members) {
	switch m.key {
	case fieldCause:
		c.Kind = registry.CauseKind(m.text())
	case fieldAPI:
		c.API = m.text()
	case fieldOp:
		c.Op = m.text()
	case fieldFrom:
		if a, err := netip.ParseAddr(m.text()); err == nil {
			c.From = a
		}
	case fieldActor:
		c.Actor = m.text()
	case fieldCauseDetail:
		c.Detail = m.text()
	}
}

func parseOwner(text string) registry.OwnerKind {
	for _, k := range []registry.OwnerKind{registry.OwnerHTTP, registry.OwnerConnection} {
		if text == k.String() {
			return k
		}
	}
	return registry.OwnerDurable
}

// parseMetadata takes over the text of an object as the core writes it. Another
// spelling is encoded anew, and what is no map of strings is dropped.
func parseMetadata(raw string) registry.Metadata {
	if plainStrings(raw) {
		return registry.Metadata(raw)
	}
	var m registry.Metadata
	if err := m.UnmarshalJSON([]byte(raw)); err != nil {
		return ""
	}
	return m
}

// plainStrings reports whether raw is an object, not empty, of strings without
// escapes, and has no blanks between them.
func plainStrings(raw string) bool {
	if len(raw) <= len("{}") {
		return false
	}
	for i := range len(raw) {
		if raw[i] < ' ' || raw[i] == '\\' {
			return false
		}
	}
	m := membersOf(raw)
	for m.next() {
		if m.raw[0] != '"' {
			return false
		}
	}
	return !m.bad
}
