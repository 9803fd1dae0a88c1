package ops

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// history answers GET /rollcall/v1/history: namespace, group, service, cluster,
// ip, port, client, kind (a comma list), since and until (RFC 3339, milliseconds
// since the epoch, or an age such as 15m), order (newest or oldest), limit,
// cursor.
func (a *API) history(x *httpapi.Exchange) {
	f, err := historyFilter(x.Params(), x.Received())
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	page, err := a.cfg.History.Query(x.Context(), f)
	if err != nil {
		a.fail(x, "read the history", err)
		return
	}
	out := opsv1.History{Events: events(page.Records), Damaged: page.Damaged}
	if page.Truncated {
		out.Next = page.Cursor
	}
	answer(x, out)
}

func historyFilter(p *httpapi.Params, now time.Time) (ledger.Filter, error) {
	key := service(p)
	f := ledger.Filter{
		Namespace: p.Optional("namespace", ""), Group: key.Group, Service: key.Name,
		Cluster: p.Optional("cluster", ""), IP: p.Optional("ip", ""),
		ClientID: registry.ClientID(p.Optional("client", "")),
	}
	if f.Namespace == "" && f.Service != "" {
		f.Namespace = registry.DefaultNamespace
	}
	if kinds := p.Optional("kind", ""); kinds != "" {
		for kind := range strings.SplitSeq(kinds, ",") {
			f.Kinds = append(f.Kinds, registry.EventKind(strings.TrimSpace(kind)))
		}
	}
	var err error
	if f.Since, err = instant(p, "since", now); err != nil {
		return f, err
	}
	if f.Until, err = instant(p, "until", now); err != nil {
		return f, err
	}
	port, err := number(p, "port", 0, 65535)
	if err != nil {
		return f, err
	}
	f.Port = int32(port)
	limit, err := number(p, "limit", 0, ledger.MaxLimit)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	return f, historyOrder(p, &f)
}

func historyOrder(p *httpapi.Params, f *ledger.Filter) error {
	cursor, err := number(p, "cursor", 0, 1<<62)
	if err != nil {
		return err
	}
	switch order := p.Optional("order", "newest"); order {
	case "newest":
		f.Before = uint64(cursor)
	case "oldest":
		f.OldestFirst, f.After = true, uint64(cursor)
	default:
		return fmt.Errorf("order: %q is neither newest nor oldest", order)
	}
	return nil
}

// number reads a whole number; absent is 0.
func number(p *httpapi.Params, name string, least, most int64) (int64, error) {
	text := p.Optional(name, "")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: %q is no whole number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// instant reads a point in time; absent is the zero time.
func instant(p *httpapi.Params, name string, now time.Time) (time.Time, error) {
	text := p.Optional(name, "")
	if text == "" {
		return time.Time{}, nil
	}
	if age, err := time.ParseDuration(text); err == nil {
		return now.Add(-age.Abs()), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %q is no time; write 2006-01-02T15:04:05Z, milliseconds since 1970, or an age such as 15m", name, text)
	}
	return t, nil
}

func events(records []ledger.Record) []opsv1.Event {
	out := make([]opsv1.Event, len(records))
	for i := range records {
		out[i] = event(&records[i])
	}
	return out
}

func event(r *ledger.Record) opsv1.Event {
	e := &r.Event
	out := opsv1.Event{
		Seq: r.Seq, Time: e.At.Wall, Kind: string(e.Kind), Revision: e.Revision,
		Service: wireService(e.Service), Cause: wireCause(e.Cause), Detail: e.Detail, Lost: r.Count,
	}
	if e.Instance != nil {
		i := wireInstance(e.Instance)
		out.Instance = &i
		out.Owner, out.Client = e.Owner.Kind.String(), string(e.Owner.Client)
	}
	return out
}

func wireService(k registry.ServiceKey) opsv1.Service {
	return opsv1.Service{Namespace: k.Namespace, Group: k.Group, Service: k.Name}
}

func wireCause(c registry.Cause) opsv1.Cause {
	out := opsv1.Cause{
		Text: c.String(), Kind: string(c.Kind), API: c.API, Op: c.Op, Actor: c.Actor, Detail: c.Detail,
	}
	if c.From.IsValid() {
		out.From = c.From.String()
	}
	return out
}

func wireInstance(i *registry.Instance) opsv1.Instance {
	out := opsv1.Instance{
		IP: i.IP, Port: i.Port, Cluster: i.Cluster, Weight: i.Weight,
		Healthy: i.Healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
	}
	if i.Metadata != "" {
		out.Metadata = i.Metadata.Map()
	}
	return out
}
