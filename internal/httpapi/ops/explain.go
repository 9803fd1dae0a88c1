package ops

import (
	"fmt"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// question is what an explanation is to answer: what a look-up makes of the
// instances of a service, or of one of them.
type question struct {
	key   registry.ServiceKey
	query registry.Query
	one   registry.InstanceKey // empty fields are any
	limit int                  // of candidates
}

// explain answers GET /rollcall/v1/explain: service, group, namespace, and of the
// look-up clusters, healthyOnly and api (v1, v2, v3 or grpc); ip, port and cluster
// ask about one instance; limit bounds the candidates.
func (a *API) explain(x *httpapi.Exchange) {
	q, err := readQuestion(x.Params())
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	out := a.present(&q)
	past, err := a.recall(x.Context(), &q, &out)
	if err != nil {
		a.fail(x, "read the history", err)
		return
	}
	out.History, out.HistoryPartial = wireEvents(past.records), past.partial
	if past.change != nil {
		change := wireEvent(past.change)
		out.Change = &change
	}
	out.Elsewhere = past.elsewhere
	if out.Subscribers, err = a.subscribers(x.Context(), q.key, past.change); err != nil {
		a.fail(x, "read the history of pushes", err)
		return
	}
	out.Summary = summarize(&q, &out)
	a.answer(x, out)
}

func readQuestion(p *httpapi.Params) (question, error) {
	q := question{key: service(p)}
	if q.key.Name == "" {
		return q, fmt.Errorf("service: say which service to explain")
	}
	q.query.Clusters = list(p, "clusters")
	switch api := p.Optional("api", "v1"); api {
	case "v1":
	case "v2", "v3", "grpc":
		q.query.Policy = registry.PolicyV2
	default:
		return q, fmt.Errorf("api: %q is none of v1, v2, v3 and grpc", api)
	}
	var err error
	if q.query.HealthyOnly, err = boolean(p, "healthyOnly"); err != nil {
		return q, err
	}
	q.one.IP, q.one.Cluster = p.Optional("ip", ""), p.Optional("cluster", "")
	if q.one.Port, err = port(p); err != nil {
		return q, err
	}
	_, q.limit, err = window(p)
	return q, err
}

// aboutOne reports whether one instance was asked about.
func (q *question) aboutOne() bool { return q.one.IP != "" }

// means reports whether the question is about i.
func (q *question) means(i *registry.Instance) bool {
	return (q.one.IP == "" || registry.CanonicalIP(i.IP) == registry.CanonicalIP(q.one.IP)) &&
		(q.one.Port == 0 || i.Port == q.one.Port) && (q.one.Cluster == "" || i.Cluster == q.one.Cluster)
}

// present says what a look-up makes of each instance now.
func (a *API) present(q *question) opsv1.Explanation {
	reader := a.cfg.Naming.Store()
	out := opsv1.Explanation{Service: wireService(q.key), Candidates: []opsv1.Candidate{}}
	view := reader.View(q.key)
	if view == nil {
		return out
	}
	out.Exists, out.Disabled = true, view.Info.Disabled
	out.ProtectThreshold, out.Revision, out.ExpiryHeld = view.Info.ProtectThreshold, view.Revision, reader.Held(q.key)
	out.Total, out.Healthy = len(view.Instances), healthy(view.Instances)

	var meant []*registry.Instance
	var verdicts []registry.Verdict
	selection := registry.Explain(view, q.query, func(i *registry.Instance, verdict registry.Verdict) {
		if q.means(i) {
			meant, verdicts = append(meant, i), append(verdicts, verdict)
		}
	})
	out.Protected = selection.Protected
	if over := len(meant) - q.limit; over > 0 {
		out.Omitted, meant = over, meant[:q.limit]
	}
	standing, named := a.standings(q.key), a.agents()
	for n, i := range meant {
		c := opsv1.Candidate{
			InstanceState: wireStanding(&registry.Standing{Instance: i, SinceBeat: -1}),
			Kept:          verdicts[n] == registry.Kept || verdicts[n] == registry.KeptByThreshold,
			Verdict:       string(verdicts[n]), Shown: selection.Healthy(i),
		}
		if st, ok := standing[i.Key()]; ok { // else it went since the view was made
			st.Instance = i
			c.InstanceState = wireStanding(&st)
			named.name(&c.InstanceState)
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}

func (a *API) standings(key registry.ServiceKey) map[registry.InstanceKey]registry.Standing {
	all := map[registry.InstanceKey]registry.Standing{}
	for _, st := range a.cfg.Naming.Store().Standings(key, a.cfg.Naming.Now()) {
		all[st.Instance.Key()] = st
	}
	return all
}
