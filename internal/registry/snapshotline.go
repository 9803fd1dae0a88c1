package registry

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nearly all lines of a large snapshot are of instances that have nothing but what
// is common, and of services that are set up like the one before. Those are written
// and read here, in the form that encoding/json gives them: it takes several times
// as long, and a server is not ready before it has read its snapshot. All other
// lines are left to it.

// isCommon reports whether i has nothing but what is common.
func (i *Instance) isCommon() bool {
	return *i == Instance{
		IP: i.IP, Cluster: i.Cluster, App: i.App, Metadata: i.Metadata, Weight: i.Weight, Port: i.Port,
		Healthy: i.Healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
	}
}

// appendInstanceLine appends the line of one owner's registration of a common
// instance.
func appendInstanceLine(b []byte, key ServiceKey, h *holding) []byte {
	i := h.base
	b = appendText(b, `{"instance":{"ns":`, key.Namespace)
	b = appendText(b, `,"group":`, key.Group)
	b = appendText(b, `,"service":`, key.Name)
	b = append(b, `,"owner":{"kind":`...)
	b = strconv.AppendInt(b, int64(h.kind), 10)
	if h.client != nil {
		b = appendText(b, `,"client":`, string(h.client.id))
	}
	b = appendFlag(b, `},"healthy":`, h.healthy)
	b = appendText(b, `,"instance":{"ip":`, i.IP)
	b = appendText(b, `,"cluster":`, i.Cluster)
	if i.App != "" {
		b = appendText(b, `,"app":`, i.App)
	}
	if i.Metadata != "" {
		b = append(b, `,"metadata":`...)
		b = append(b, i.Metadata...)
	}
	b = append(b, `,"weight":`...)
	b = strconv.AppendFloat(b, i.Weight, 'f', -1, 64)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = appendFlag(b, `,"healthy":`, i.Healthy)
	b = appendFlag(b, `,"enabled":`, i.Enabled)
	b = appendFlag(b, `,"ephemeral":`, i.Ephemeral)
	return append(b, "}}}\n"...)
}

func appendText(b []byte, label, text string) []byte {
	return AppendJSONString(append(b, label...), text)
}

func appendFlag(b []byte, label string, flag bool) []byte {
	return strconv.AppendBool(append(b, label...), flag)
}

// entryReader reads the lines of a snapshot.
type entryReader struct {
	texts interner // those that are kept repeat from line to line
	// settings are what the latest service is set up with, and how its line says
	// that.
	settings struct {
		text     string
		info     *ServiceInfo
		clusters []*Cluster
	}
}

// entry reads one line.
func (r *entryReader) entry(line string) (e entry, err error) {
	if i, ok := r.instance(line); ok {
		return entry{Instance: i}, nil
	}
	service, settings, plain := r.service(line)
	if plain && r.settings.info != nil && settings == r.settings.text {
		service.Info, service.Clusters = r.settings.info, r.settings.clusters
		return entry{Service: service}, nil
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return e, err
	}
	if plain && e.Service != nil {
		r.settings.text, r.settings.info, r.settings.clusters = strings.Clone(settings), e.Service.Info, e.Service.Clusters
	}
	return e, e.check()
}

// service reads all but the settings of a line of a service, which it returns as
// text. ok is false for a line of something else or with escapes in its names.
func (r *entryReader) service(line string) (e *serviceEntry, settings string, ok bool) {
	l, ok := r.line(line, `{"service":{"ns":`)
	if !ok {
		return nil, "", false
	}
	e = &serviceEntry{ServiceKey: l.serviceKey()}
	// The last one, as the metadata may have that key too.
	const end = `,"revision":`
	at := strings.LastIndex(l.rest, end)
	if at < 0 {
		return nil, "", false
	}
	settings, l.rest = l.rest[:at], l.rest[at+len(end):]
	e.Revision = l.number(64)
	e.Kept = l.skip(`,"kept":true`)
	l.expect("}}\n")
	return e, settings, !l.failed && l.rest == ""
}

// instance reads what [appendInstanceLine] wrote, if no text has escapes. ok is
// false for every other line, which says nothing about it.
func (r *entryReader) instance(line string) (e *instanceEntry, ok bool) {
	l, ok := r.line(line, `{"instance":{"ns":`)
	if !ok {
		return nil, false
	}
	both := &struct {
		entry    instanceEntry
		instance Instance
	}{}
	e, i := &both.entry, &both.instance
	e.Instance = i
	e.ServiceKey = l.serviceKey()
	l.expect(`,"owner":{"kind":`)
	e.Owner.Kind = OwnerKind(l.number(8))
	if l.skip(`,"client":`) {
		e.Owner.Client = ClientID(l.text())
	}
	l.expect(`},"healthy":`)
	e.Healthy = l.flag()
	l.expect(`,"instance":{"ip":`)
	i.IP = l.text()
	l.expect(`,"cluster":`)
	i.Cluster = l.text()
	if l.skip(`,"app":`) {
		i.App = l.text()
	}
	if l.skip(`,"metadata":`) {
		i.Metadata = l.metadata()
	}
	l.expect(`,"weight":`)
	i.Weight = l.float()
	l.expect(`,"port":`)
	i.Port = int32(l.number(32))
	l.expect(`,"healthy":`)
	i.Healthy = l.flag()
	l.expect(`,"enabled":`)
	i.Enabled = l.flag()
	l.expect(`,"ephemeral":`)
	i.Ephemeral = l.flag()
	l.expect("}}}\n")
	return e, !l.failed && l.rest == ""
}

// line returns a reader of what follows begin, if line begins so.
func (r *entryReader) line(line, begin string) (l lineReader, ok bool) {
	rest, ok := strings.CutPrefix(line, begin)
	return lineReader{rest: rest, texts: &r.texts}, ok && utf8.ValidString(line)
}

// lineReader takes a line apart from its front. After the first thing that is not
// what is asked for it has failed.
type lineReader struct {
	rest   string
	failed bool
	texts  *interner
}

// skip drops text from the front if it is there.
func (l *lineReader) skip(text string) bool {
	rest, ok := strings.CutPrefix(l.rest, text)
	l.rest = rest
	return ok
}

func (l *lineReader) expect(text string) {
	if !l.skip(text) {
		l.failed = true
	}
}

// text reads a string without escapes.
func (l *lineReader) text() string {
	text, rest, ok := cutPlainString(l.rest)
	l.rest, l.failed = rest, l.failed || !ok
	return l.texts.intern(text)
}

// serviceKey reads from the value of the namespace to that of the service's name.
func (l *lineReader) serviceKey() (key ServiceKey) {
	key.Namespace = l.text()
	l.expect(`,"group":`)
	key.Group = l.text()
	l.expect(`,"service":`)
	key.Name = l.text()
	return key
}

// metadata reads an object of strings without escapes, in the form that
// [NewMetadata] gives it.
func (l *lineReader) metadata() Metadata {
	end := strings.Index(l.rest, `"}`)
	if end < 0 {
		l.failed = true
		return ""
	}
	text := l.rest[:end+len(`"}`)]
	l.rest = l.rest[len(text):]
	m, ok := parsePlainMetadata(text)
	l.failed = l.failed || !ok || string(m) != text
	return Metadata(l.texts.intern(text))
}

// flag reads true or false.
func (l *lineReader) flag() bool {
	if l.skip("true") {
		return true
	}
	l.expect("false")
	return false
}

// number reads an integer of so many bits.
func (l *lineReader) number(bits int) int64 {
	n, err := strconv.ParseInt(l.digits(), 10, bits)
	l.failed = l.failed || err != nil
	return n
}

func (l *lineReader) float() float64 {
	f, err := strconv.ParseFloat(l.digits(), 64)
	l.failed = l.failed || err != nil
	return f
}

// digits cuts a number off.
func (l *lineReader) digits() string {
	end := strings.IndexAny(l.rest, ",}")
	text := l.rest[:max(end, 0)]
	l.rest = l.rest[len(text):]
	return text
}
