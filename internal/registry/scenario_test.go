package registry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios plays the stories of testdata/scenarios: commands, and below them
// the events that they cause, with their causes. go test -rewrite writes what
// happens into the files, to be reviewed as a difference. scenario.run lists the
// commands.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{world: newWorld(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := s.run(&arguments{t: t, d: d})
			checkStore(t, s.Store)
			return cmp.Or(out, "nothing\n")
		})
	})
}

type scenario struct{ *world }

// tick is how often time looks, as on a server.
const tick = 250 * time.Millisecond

func (s *scenario) run(a *arguments) string {
	switch a.d.Cmd {
	case "advance":
		return s.advanceBy(a.duration())
	case "beat":
		state := s.Beat(&Beat{Meta: s.why(CauseBeat, "beat"), Service: a.service(), Instance: a.key()})
		if !state.Known {
			return "unknown\n"
		}
		return s.told()
	case "list":
		return s.list(a)
	case "explain":
		return s.explain(a)
	case "services":
		keys, total := s.Services(a.text("namespace", DefaultNamespace), a.text("group", ""), a.number("offset", 0), a.number("limit", -1))
		out := ""
		for _, k := range keys {
			out += k.Grouped() + "\n"
		}
		return out + fmt.Sprintf("of %d\n", total)
	case "subscribers":
		out := ""
		for _, sub := range s.Subscribers(a.service()) {
			out += sub.describe() + "\n"
		}
		return out
	case "expire-subscribers":
		s.ExpireSubscribers(s.now, a.duration())
		return s.told()
	case "open":
		s.OpenClient(ClientID(a.next()))
		return ""
	case "restart":
		return s.restart(a)
	default:
		return s.apply(a.command(s.why(CauseRequest, a.d.Cmd)))
	}
}

func (s *scenario) why(kind CauseKind, op string) Meta {
	return Meta{At: s.now, Cause: Cause{Kind: kind, API: "test", Op: op}}
}

// apply sends a command, a durable one through its encoded form.
func (s *scenario) apply(c Command) string {
	if durableName(c) != "" {
		data, err := EncodeCommand(c)
		if err == nil {
			c, err = DecodeCommand(data)
		}
		if err != nil {
			return err.Error() + "\n"
		}
	}
	_, err := s.Apply(c)
	if err != nil {
		var refusal *Error
		if !errors.As(err, &refusal) {
			s.t.Fatal(err)
		}
		return "refused: " + err.Error() + "\n"
	}
	return s.told()
}

// advanceBy lets time pass tick by tick and applies what becomes due.
func (s *scenario) advanceBy(d time.Duration) string {
	out := ""
	for d > 0 {
		step := min(d, tick)
		d -= step
		due := s.pass(step)
		slices.SortFunc(due, func(a, b DropOverride) int { return a.Target.compare(b.Target) })
		for i := range due {
			s.must(&due[i])
		}
		for line := range strings.Lines(s.told()) {
			out += fmt.Sprintf("%8v  %s", s.now.Lease, line)
		}
	}
	return out
}

// told prints the events since the last look. Services are independent, so they
// are told of one by one.
func (s *scenario) told() string {
	slices.SortStableFunc(s.rec.events, func(a, b Event) int { return a.Service.compare(b.Service) })
	var b strings.Builder
	for i := range s.rec.events {
		e := &s.rec.events[i]
		b.WriteString(eventLine(e))
		if e.Owner != (Owner{}) && e.Instance != nil {
			b.WriteString(" by " + ownerName(e.Owner))
		}
		if e.Detail != "" {
			b.WriteString(" " + e.Detail)
		}
		if cause := e.Cause.String(); e.Cause.Kind != CauseRequest {
			b.WriteString(" (" + cause + ")")
		}
		b.WriteByte('\n')
	}
	s.rec.events = nil
	return b.String()
}

func ownerName(o Owner) string { return cmp.Or(string(o.Client), o.Kind.String()) }

// list prints what a client sees.
func (s *scenario) list(a *arguments) string {
	v := s.View(a.service())
	if v == nil {
		return "no such service\n"
	}
	sel := Select(v, a.query())
	out := ""
	if sel.Protected {
		out = "protected\n"
	}
	for _, i := range sel.Instances {
		out += instanceLine(i, sel.Healthy(i)) + "\n"
	}
	return out
}

func instanceLine(i *Instance, healthy bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d/%s", i.IP, i.Port, i.Cluster)
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{!healthy, "unhealthy"},
		{!i.Enabled, "disabled"},
		{!i.Ephemeral, "persistent"},
		{i.Weight != 1, "weight " + strconv.FormatFloat(i.Weight, 'f', -1, 64)},
		{i.Metadata != "", string(i.Metadata)},
		{i.Serial > 0, "number " + strconv.Itoa(int(i.Serial-1))},
	} {
		if flag.on {
			b.WriteString(" " + flag.text)
		}
	}
	return b.String()
}

// explain prints what is known of each instance, and what became of it.
func (s *scenario) explain(a *arguments) string {
	key := a.service()
	v := s.View(key)
	if v == nil {
		return "no such service\n"
	}
	standings := s.Standings(key, s.now)
	out, n := "", 0
	if s.Held(key) {
		out = "expiry is held\n"
	}
	Explain(v, a.query(), func(i *Instance, verdict Verdict) {
		st := standings[n]
		n++
		out += instanceLine(i, i.Healthy) + "\n"
		for _, h := range st.Owners {
			out += "  owner " + ownerName(h.Owner)
			if !h.Healthy {
				out += ", unhealthy"
			}
			if h.Kind == OwnerHTTP {
				out += fmt.Sprintf(", beat %v ago", st.SinceBeat)
			}
			out += "\n"
		}
		if st.Override != nil {
			out += "  override " + marshal(a.t, st.Override) + "\n"
		}
		out += "  " + string(verdict) + "\n"
	})
	return out
}

// restart writes what is remembered and reads it into a new store, whose lease
// clock begins anew.
func (s *scenario) restart(a *arguments) string {
	var durable, ephemeral bytes.Buffer
	if err := errors.Join(s.Durable()(&durable), s.Ephemeral()(&ephemeral)); err != nil {
		a.t.Fatal(err)
	}
	wall := s.now.Wall
	s.world = newWorld(a.t)
	s.now.Wall = wall
	why := Meta{At: s.now, Cause: Cause{Kind: CauseRestart}}
	s.Install(read(a.t, durable.String()), why)
	snap := read(a.t, ephemeral.String())
	for _, id := range snap.Clients() {
		s.OpenClient(id)
	}
	s.Merge(snap, why)
	return s.told()
}

// arguments reads the arguments of one command: those without a name in turn, the
// others by name.
type arguments struct {
	t  *testing.T
	d  *datadriven.TestData
	at int
}

func (a *arguments) next() string {
	for a.at < len(a.d.CmdArgs) {
		arg := a.d.CmdArgs[a.at]
		a.at++
		if len(arg.Vals) == 0 {
			return arg.Key
		}
	}
	a.d.Fatalf(a.t, "%s: an argument is missing", a.d.Cmd)
	return ""
}

func (a *arguments) find(name string) (string, bool) {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == name {
			return strings.Join(arg.Vals, ","), true
		}
	}
	return "", false
}

func (a *arguments) text(name, otherwise string) string {
	if text, ok := a.find(name); ok {
		return text
	}
	return otherwise
}

func (a *arguments) number(name string, otherwise int) int {
	n, err := strconv.Atoi(a.text(name, strconv.Itoa(otherwise)))
	a.need(err)
	return n
}

func (a *arguments) float(name string, otherwise float64) float64 {
	f, err := strconv.ParseFloat(a.text(name, fmt.Sprint(otherwise)), 64)
	a.need(err)
	return f
}

func (a *arguments) bool(name string, otherwise bool) bool {
	switch text, ok := a.find(name); {
	case !ok:
		return otherwise
	default:
		return text != "false"
	}
}

func (a *arguments) need(err error) {
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", a.d.Cmd, err)
	}
}

func (a *arguments) duration() time.Duration {
	d, err := time.ParseDuration(a.next())
	a.need(err)
	return d
}

// service reads a service: a name, group@@name, or namespace##group@@name.
func (a *arguments) service() ServiceKey {
	key := ServiceKey{Namespace: DefaultNamespace, Group: DefaultGroup}
	text := a.next()
	if ns, rest, found := strings.Cut(text, "##"); found {
		key.Namespace, text = ns, rest
	}
	group, name, found := ParseGrouped(text)
	if found {
		key.Group = group
	}
	key.Name = name
	return key
}

// instance reads ip:port and the fields given by name.
func (a *arguments) instance() Instance {
	text := a.next()
	colon := strings.LastIndexByte(text, ':')
	port, err := strconv.Atoi(text[colon+1:])
	a.need(err)
	return Instance{
		IP: text[:colon], Port: int32(port), Cluster: a.text("cluster", DefaultCluster),
		Weight: a.float("weight", 1), Healthy: a.bool("healthy", true), Enabled: a.bool("enabled", true),
		Metadata: a.metadata(),
	}
}

func (a *arguments) key() InstanceKey {
	i := a.instance()
	return i.Key()
}

// metadata reads the arguments that begin with a dot.
func (a *arguments) metadata() Metadata {
	m := map[string]string{}
	for _, arg := range a.d.CmdArgs {
		if key, found := strings.CutPrefix(arg.Key, "."); found {
			m[key] = strings.Join(arg.Vals, ",")
		}
	}
	return NewMetadata(m)
}

func (a *arguments) owner() Owner {
	switch by := a.text("by", "http"); by {
	case "http":
		return Owner{Kind: OwnerHTTP}
	case "durable":
		return Owner{Kind: OwnerDurable}
	default:
		return connection(ClientID(by))
	}
}

func (a *arguments) kind() Kind {
	return map[string]Kind{"ephemeral": KindEphemeral, "persistent": KindPersistent}[a.text("kind", "")]
}

func (a *arguments) query() Query {
	q := Query{HealthyOnly: a.bool("healthyOnly", false), WithDisabled: a.bool("withDisabled", false)}
	if a.text("policy", "v1") == "v2" {
		q.Policy = PolicyV2
	}
	if clusters, ok := a.find("clusters"); ok {
		q.Clusters = strings.Split(clusters, ",")
	}
	return q
}

func (a *arguments) info() ServiceInfo {
	return ServiceInfo{
		ProtectThreshold: float32(a.float("threshold", 0)), Kind: a.kind(),
		Selector: Selector{Type: SelectorNone}, Metadata: a.metadata(),
	}
}

func (a *arguments) subscriber() *Subscriber {
	s := &Subscriber{Service: a.service(), Protocol: ProtocolUDP, Refused: a.text("refused", "")}
	s.Clusters = a.text("clusters", "")
	if client, ok := a.find("client"); ok {
		s.Protocol, s.Client = ProtocolGRPC, ClientID(client)
	}
	addr, err := netip.ParseAddrPort(a.text("to", "10.0.0.9:50000"))
	a.need(err)
	s.Addr = addr
	return s
}

// override reads the fields that are given.
func (a *arguments) override() Override {
	var o Override
	if _, ok := a.find("weight"); ok {
		o.Weight = new(a.float("weight", 0))
	}
	if _, ok := a.find("enabled"); ok {
		o.Enabled = new(a.bool("enabled", true))
	}
	if m := a.metadata(); m != "" {
		o.Metadata = &m
	}
	return o
}

// command reads one of the store's commands.
func (a *arguments) command(m Meta) Command {
	switch a.d.Cmd {
	case "register":
		c := &Register{Meta: m, Service: a.service(), Owner: a.owner(), Kind: a.kind(), TakeHealth: a.bool("takeHealth", false)}
		c.Instance = a.instance()
		return c
	case "deregister":
		return &Deregister{Meta: m, Service: a.service(), Owner: a.owner(), Instance: a.key()}
	case "set-health":
		c := &SetHealth{Meta: m, Service: a.service(), Instance: a.key(), Healthy: a.bool("healthy", true)}
		_, ofOne := a.find("by")
		c.All, c.Kind = !ofOne, a.owner().Kind
		return c
	case "override":
		return &SetOverride{Meta: m, Service: a.service(), Entries: []TargetOverride{{Target: a.key(), Override: a.override()}}}
	case "drop-override":
		return &DropOverride{Meta: m, Service: a.service(), Target: a.key()}
	case "close":
		return &CloseClient{Meta: Meta{At: m.At, Cause: Cause{Kind: CauseDisconnect}}, Client: ClientID(a.next())}
	case "create-service":
		return &CreateService{Meta: m, Service: a.service(), Info: a.info(), Adopt: a.bool("adopt", false)}
	case "update-service":
		return &UpdateService{Meta: m, Service: a.service(), Info: a.info()}
	case "delete-service":
		return &DeleteService{Meta: m, Service: a.service(), IfEmpty: a.bool("ifEmpty", false)}
	case "subscribe":
		return &Subscribe{Meta: m, Subscriber: a.subscriber()}
	case "unsubscribe":
		s := a.subscriber()
		return &Unsubscribe{Meta: m, Service: s.Service, Subscriber: s.SubscriberKey}
	case "set-switch":
		return &SetSwitch{Meta: m, Entry: a.next(), Value: a.next()}
	}
	a.d.Fatalf(a.t, "%q is no command", a.d.Cmd)
	return nil
}
