package ops

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// explainHistory is how many entries of the history an explanation carries.
const explainHistory = 20

// explain answers GET /rollcall/v1/explain: service, group, namespace, and of the
// look-up clusters, healthyOnly, clientIP, api (v1 or v2); ip, port and cluster
// ask about one instance.
func (a *API) explain(x *httpapi.Exchange) {
	p := x.Params()
	key := service(p)
	if key.Name == "" {
		refuse(x, 400, "service: say which service to explain")
		return
	}
	q, err := lookup(p)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	port, err := number(p, "port", 0, 65535)
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	one := registry.InstanceKey{IP: p.Optional("ip", ""), Port: int32(port), Cluster: p.Optional("cluster", "")}
	out := a.explanation(key, q, one)
	page, err := a.cfg.History.Query(x.Context(), ledger.Filter{
		Namespace: key.Namespace, Group: key.Group, Service: key.Name,
		IP: one.IP, Port: one.Port, Cluster: one.Cluster, Limit: explainHistory,
	})
	if err != nil {
		a.fail(x, "read the history", err)
		return
	}
	out.History = events(page.Records)
	out.Summary = summary(&out, one)
	answer(x, out)
}

// lookup reads the look-up to explain.
func lookup(p *httpapi.Params) (registry.Query, error) {
	q := registry.Query{ConsumerIP: p.Optional("clientIP", ""), HealthyOnly: p.BoolStrict("healthyOnly", false)}
	for name := range strings.SplitSeq(p.Optional("clusters", ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			q.Clusters = append(q.Clusters, name)
		}
	}
	switch api := p.Optional("api", "v1"); api {
	case "v1":
	case "v2", "v3", "grpc":
		q.Policy = registry.PolicyV2
	default:
		return q, fmt.Errorf("api: %q is none of v1, v2, v3 and grpc", api)
	}
	return q, nil
}

// explanation says what a look-up makes of each instance. one narrows the
// candidates to an address when it names one.
func (a *API) explanation(key registry.ServiceKey, q registry.Query, one registry.InstanceKey) opsv1.Explanation {
	reader := a.cfg.Naming.Store()
	out := opsv1.Explanation{Service: wireService(key), Candidates: []opsv1.Candidate{}, Subscribers: []opsv1.Subscriber{}}
	for _, s := range reader.Subscribers(key) {
		out.Subscribers = append(out.Subscribers, opsv1.Subscriber{
			Protocol: string(s.Protocol), Address: s.Addr.String(), Client: string(s.Client),
			Agent: s.Agent, Clusters: s.Clusters, Refused: s.Refused,
		})
	}
	view := reader.View(key)
	if view == nil {
		return out
	}
	standing := map[registry.InstanceKey]registry.Standing{}
	for _, st := range reader.Standings(key, a.cfg.Naming.Now()) {
		standing[st.Instance.Key()] = st
	}
	out.Exists, out.Disabled = true, view.Info.Disabled
	out.ProtectThreshold, out.Revision, out.ExpiryHeld = view.Info.ProtectThreshold, view.Revision, reader.Held(key)
	var all []opsv1.Candidate
	var shown []*registry.Instance
	sel := registry.Explain(view, q, func(i *registry.Instance, verdict registry.Verdict) {
		if !asked(i, one) {
			return
		}
		shown = append(shown, i)
		all = append(all, candidate(i, verdict, standing[i.Key()]))
	})
	for n, i := range shown {
		all[n].Shown = sel.Healthy(i)
	}
	out.Protected, out.Total = sel.Protected, len(view.Instances)
	for _, i := range view.Instances {
		if i.Healthy {
			out.Healthy++
		}
	}
	out.Candidates = append(out.Candidates, all...)
	return out
}

// asked reports whether an explanation that names one instance means i.
func asked(i *registry.Instance, one registry.InstanceKey) bool {
	return (one.IP == "" || registry.CanonicalIP(i.IP) == registry.CanonicalIP(one.IP)) &&
		(one.Port == 0 || i.Port == one.Port) && (one.Cluster == "" || i.Cluster == one.Cluster)
}

func candidate(i *registry.Instance, verdict registry.Verdict, st registry.Standing) opsv1.Candidate {
	c := opsv1.Candidate{
		Instance: wireInstance(i), Verdict: string(verdict), Owners: []opsv1.Owner{},
		Kept: verdict == registry.Kept || verdict == registry.KeptByThreshold,
	}
	for _, o := range st.Owners {
		c.Owners = append(c.Owners, opsv1.Owner{Kind: o.Kind.String(), Client: string(o.Client), Healthy: o.Healthy})
	}
	if len(st.Owners) > 0 && st.SinceBeat >= 0 {
		c.SinceBeat = new(st.SinceBeat.Milliseconds())
		c.ExpiresIn = new(max(i.DeleteTimeout()-st.SinceBeat, 0).Milliseconds())
	}
	if o := st.Override; o != nil {
		c.Override = &opsv1.Override{Weight: o.Weight, Enabled: o.Enabled, App: o.App}
		if o.Metadata != nil {
			c.Override.Metadata = new(o.Metadata.Map())
		}
	}
	return c
}

// summary answers the question in a sentence or two.
func summary(e *opsv1.Explanation, one registry.InstanceKey) string {
	name := e.Group + registry.GroupSeparator + e.Service.Service
	what := name
	if one.IP != "" {
		what = one.IP
		if one.Port != 0 {
			what = fmt.Sprintf("%s:%d", one.IP, one.Port)
		}
	}
	switch {
	case !e.Exists:
		return fmt.Sprintf("There is no service %s in namespace %s.%s", name, e.Namespace, lastWord(e.History))
	case one.IP != "" && len(e.Candidates) == 0:
		return fmt.Sprintf("%s is not in %s.%s", what, name, lastWord(e.History))
	case e.Disabled:
		return name + " is disabled and answers no look-ups."
	}
	kept := 0
	for _, c := range e.Candidates {
		if c.Kept {
			kept++
		}
	}
	if one.IP != "" && len(e.Candidates) == 1 {
		return fmt.Sprintf("%s is in %s: %s.", what, name, e.Candidates[0].Verdict)
	}
	text := fmt.Sprintf("A look-up of %s gives %d of %d instances; %d of %d are healthy.", name, kept, len(e.Candidates), e.Healthy, e.Total)
	if e.Protected {
		text += fmt.Sprintf(" The protect threshold %g is reached, so all are shown as healthy.", e.ProtectThreshold)
	}
	if e.ExpiryHeld {
		text += " The brake holds the removal of silent instances."
	}
	return text
}

// lastWord tells the newest entry of the history.
func lastWord(history []opsv1.Event) string {
	if len(history) == 0 {
		return " The history has nothing of it."
	}
	e := history[0]
	return fmt.Sprintf(" Last: %s at %s (%s).", e.Kind, time.UnixMilli(e.Time).UTC().Format(time.RFC3339), e.Cause.Text)
}
