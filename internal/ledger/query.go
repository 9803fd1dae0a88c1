package ledger

import (
	"bytes"
	"context"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The limits of one query.
const (
	DefaultLimit = 100
	MaxLimit     = 10_000
	// queryBudget is how many bytes of segments one query reads before it gives
	// back what it found and a cursor. It is a few tens of milliseconds of work.
	queryBudget = 32 << 20
)

// Filter chooses records. A zero field chooses all. Without Kinds, records of kind
// [Lost] are chosen whatever the rest says: nobody knows what they stand for.
type Filter struct {
	Namespace, Group, Service string
	Cluster                   string
	IP                        string // in any spelling
	Port                      int32
	ClientID                  registry.ClientID // the connection that owned the instance
	Subscriber                netip.AddrPort    // whom a push went to
	Kinds                     []registry.EventKind
	Since, Until              time.Time // by the wall clock, both included, to the millisecond
	// After and Before bound the sequence numbers; neither is included.
	After, Before uint64
	// OldestFirst turns the order around; it is newest first otherwise.
	OldestFirst bool
	// Limit bounds the records of one page: DefaultLimit when 0, MaxLimit at most.
	Limit int
}

// Page is an answer to a query.
type Page struct {
	Records []Record
	// Truncated: there may be more. Ask again with Cursor as Before, or as After
	// when it is oldest first.
	Truncated bool
	Cursor    uint64
	// Damaged lines were met and skipped; what they said is not known.
	Damaged int
}

// Query returns one page of the records that f chooses. The work of a call is
// bounded, so a page may be truncated with few records or none. Few queries run
// at a time; others wait for their turn or for ctx to end.
func (l *Ledger) Query(ctx context.Context, f Filter) (Page, error) {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return Page{}, ctx.Err()
	}
	limit := min(max(f.Limit, 0), MaxLimit)
	if limit == 0 {
		limit = DefaultLimit
	}
	m := newMatcher(&f)
	var page Page
	s := scan{after: f.After, before: f.Before, backwards: !f.OldestFirst, budget: queryBudget}
	s.since, s.until = f.window()
	if s.before == 0 {
		s.before = math.MaxUint64
	}
	s.visit = func(line []byte, h head) bool {
		if !m.maybe(line, h) {
			return true
		}
		rec, err := parseRecord(line)
		if err != nil {
			page.Damaged++
		} else if f.matches(&rec) {
			page.Records = append(page.Records, rec)
		}
		return len(page.Records) < limit
	}
	end, err := l.scan(ctx, s)
	page.Truncated, page.Cursor = end.stopped, end.last
	page.Damaged += end.damaged
	return page, err
}

// window returns Since and Until in milliseconds.
func (f *Filter) window() (since, until int64) {
	since, until = math.MinInt64, math.MaxInt64
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	if !f.Until.IsZero() {
		until = f.Until.UnixMilli()
	}
	return since, until
}

// matches is the whole filter, but for time and sequence numbers.
func (f *Filter) matches(r *Record) bool {
	e := &r.Event
	if e.Kind == Lost && len(f.Kinds) == 0 {
		return true
	}
	return (f.Namespace == "" || f.Namespace == e.Service.Namespace) &&
		(f.Group == "" || f.Group == e.Service.Group) &&
		(f.Service == "" || f.Service == e.Service.Name) &&
		(f.ClientID == "" || f.ClientID == e.Owner.Client) &&
		(!f.Subscriber.IsValid() || e.Subscriber != nil && f.Subscriber == e.Subscriber.Addr) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		f.matchesInstance(e.Instance)
}

func (f *Filter) matchesInstance(i *registry.Instance) bool {
	if f.Cluster == "" && f.IP == "" && f.Port == 0 {
		return true
	}
	return i != nil &&
		(f.Cluster == "" || f.Cluster == i.Cluster) &&
		(f.Port == 0 || f.Port == i.Port) &&
		(f.IP == "" || registry.CanonicalIP(f.IP) == registry.CanonicalIP(i.IP))
}

// matcher drops most lines by their bytes, before they are parsed. It errs on the
// side of keeping: a text inside of metadata may look like a member.
type matcher struct {
	kinds   []string // as JSON text without quotes
	needles [][]byte
	ip      string // canonical; empty for any
}

func newMatcher(f *Filter) *matcher {
	m := &matcher{ip: registry.CanonicalIP(f.IP)}
	for _, k := range f.Kinds {
		text := registry.AppendJSONString(nil, string(k))
		m.kinds = append(m.kinds, string(text[1:len(text)-1]))
	}
	for _, c := range []struct{ field, text string }{ // the most selective first
		{fieldService, f.Service},
		{fieldClient, string(f.ClientID)},
		{fieldCluster, f.Cluster},
		{fieldGroup, f.Group},
		{fieldNamespace, f.Namespace},
	} {
		if c.text != "" {
			m.needles = append(m.needles, appendText(nil, `"`+c.field+`":`, c.text))
		}
	}
	if f.Subscriber.IsValid() {
		m.needles = append(m.needles, appendText(nil, `"`+fieldSubscriber+`":`, f.Subscriber.String()))
	}
	if f.Port != 0 {
		m.needles = append(m.needles, appendNonZero(nil, `"`+fieldPort+`":`, int64(f.Port)))
	}
	return m
}

func (m *matcher) maybe(line []byte, h head) bool {
	if len(m.kinds) == 0 && string(h.kind) == string(Lost) {
		return true
	}
	if len(m.kinds) > 0 && !slices.Contains(m.kinds, string(h.kind)) {
		return false
	}
	if m.ip != "" && !m.maybeIP(line) {
		return false
	}
	for _, needle := range m.needles {
		if !bytes.Contains(line, needle) {
			return false
		}
	}
	return true
}

// maybeIP finds the address in line and compares it by identity. Nothing before
// it in a record is an object, so the first such member is the right one.
func (m *matcher) maybeIP(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte(`,"`+fieldIP+`":"`))
	if !ok {
		return false
	}
	ip, _, _ := bytes.Cut(rest, []byte{'"'})
	if string(ip) == m.ip {
		return true
	}
	return bytes.ContainsAny(ip, `:\`) && registry.CanonicalIP(string(ip)) == m.ip
}
