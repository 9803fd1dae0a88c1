package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// viewOf makes a view of instances from words such as "1", "2u" (unhealthy),
// "3d" (disabled), "4ud" and "5u@c1" (in cluster c1); the number is the port.
func viewOf(info ServiceInfo, words string) *View {
	v := &View{Info: &info, Clusters: []*Cluster{NewCluster(DefaultCluster), NewCluster("c1"), NewCluster("c2")}}
	for word := range strings.FieldsSeq(words) {
		word, cluster, found := strings.Cut(word, "@")
		if !found {
			cluster = DefaultCluster
		}
		port, _ := strconv.Atoi(strings.TrimRight(word, "ud"))
		v.Instances = append(v.Instances, &Instance{
			IP: "10.0.0.1", Port: int32(port), Cluster: cluster, Weight: 1,
			Healthy: !strings.Contains(word, "u"), Enabled: !strings.Contains(word, "d"),
		})
	}
	return v
}

// shown prints a selection as ports, with u for those that are shown unhealthy.
func shown(sel Selection) string {
	var words []string
	for _, i := range sel.Instances {
		word := strconv.Itoa(int(i.Port))
		if !sel.Healthy(i) {
			word += "u"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestSelect(t *testing.T) {
	for _, tt := range []struct {
		name      string
		threshold float32
		instances string
		query     Query
		v1, v2    string // what each policy shows; v2 of a service that was set up
		protected [2]bool
	}{
		{"all healthy", 0, "1 2", Query{}, "1 2", "1 2", [2]bool{}},
		{"empty", 0.5, "", Query{}, "", "", [2]bool{}},
		{"one unhealthy", 0, "1 2u", Query{}, "1 2u", "1 2u", [2]bool{}},
		{"healthy only", 0, "1 2u 3d", Query{HealthyOnly: true}, "1", "1", [2]bool{}},
		{"disabled are dropped", 0, "1 2u 3d", Query{}, "1 2u", "1 2u", [2]bool{}},
		{"disabled are kept for 0.9", 0, "1 2u 3d", Query{WithDisabled: true}, "1 2u 3", "1 2u 3", [2]bool{}},
		{"all dead", 0, "1u 2u", Query{}, "1 2", "1 2", [2]bool{true, true}},
		{"all dead, healthy only", 0, "1u 2u", Query{HealthyOnly: true}, "1 2", "", [2]bool{true, false}},
		{"dead and a disabled one", 0, "1u 2d", Query{}, "1u", "1", [2]bool{false, true}},
		{"dead and a disabled one, healthy only", 0, "1u 2d", Query{HealthyOnly: true}, "", "", [2]bool{}},
		{"half healthy, 0.4", 0.4, "1 2 3u 4u", Query{}, "1 2 3u 4u", "1 2 3u 4u", [2]bool{}},
		{"half healthy, 0.5", 0.5, "1 2 3u 4u", Query{}, "1 2 3 4", "1 2 3 4", [2]bool{true, true}},
		{"half healthy, 0.6", 0.6, "1 2 3u 4u", Query{}, "1 2 3 4", "1 2 3 4", [2]bool{true, true}},
		{"half healthy, 0.6, healthy only", 0.6, "1 2 3u 4u", Query{HealthyOnly: true}, "1 2 3 4", "1 2", [2]bool{true, false}},
		{"half healthy, 1", 1, "1 2 3u 4u", Query{}, "1 2 3 4", "1 2 3 4", [2]bool{true, true}},
		{"all healthy, 1, healthy only", 1, "1 2", Query{HealthyOnly: true}, "1 2", "1 2", [2]bool{true, true}},
		{"half healthy, -1", -1, "1 2 3u 4u", Query{}, "1 2 3u 4u", "1 2 3u 4u", [2]bool{}},
		{"all dead, -1", -1, "1u 2u", Query{}, "1u 2u", "1u 2u", [2]bool{}},
		{"a third, as float32", 1.0 / 3, "1 2u 3u", Query{}, "1 2 3", "1 2 3", [2]bool{true, true}},
		{"protected and a disabled one", 0.5, "1 2u 3ud", Query{}, "1 2", "1 2", [2]bool{true, true}},
		{"in one cluster", 0.5, "1 2u@c1 3@c1 4@c1", Query{Clusters: []string{"c1"}}, "2u 3 4", "2u 3 4", [2]bool{}},
		{"in the other cluster", 0.5, "1 2u@c1 3@c1 4@c1", Query{Clusters: []string{"DEFAULT"}}, "1", "1", [2]bool{}},
		{"in an unknown cluster", 0.5, "1 2u@c1", Query{Clusters: []string{"c9"}}, "", "", [2]bool{}},
		{"in two, one unknown", 0.5, "1 2@c1", Query{Clusters: []string{"c9", "c1"}}, "2", "2", [2]bool{}},
		{"in the order of the question", 0, "1 2@c1 3@c2", Query{Clusters: []string{"c2", "DEFAULT"}}, "3 1", "3 1", [2]bool{}},
		{"twice", 0, "1 2@c1", Query{Clusters: []string{"c1", "c1"}}, "2 2", "2 2", [2]bool{}},
		{"endlessly", 0, "1 2@c1", Query{Clusters: slices.Repeat([]string{"c1", "DEFAULT"}, 99)}, "2 1 2 1", "2 1 2 1", [2]bool{}},
	} {
		for policy, want := range []string{tt.v1, tt.v2} {
			t.Run(fmt.Sprintf("%s/v%d", tt.name, policy+1), func(t *testing.T) {
				v := viewOf(ServiceInfo{ProtectThreshold: tt.threshold, Set: true}, tt.instances)
				q := tt.query
				q.Policy = Policy(policy)
				sel := Select(v, q)
				if got := shown(sel); got != want || sel.Protected != tt.protected[policy] {
					t.Errorf("got %q, protected %v; want %q, %v", got, sel.Protected, want, tt.protected[policy])
				}
			})
		}
	}
}

// In 2.x nothing protects a service that came into being with its instances.
func TestSelectV2NeedsSettings(t *testing.T) {
	v := viewOf(ServiceInfo{}, "1u 2u")
	if got := shown(Select(v, Query{Policy: PolicyV2})); got != "1u 2u" {
		t.Errorf("v2 shows %q, want all unhealthy", got)
	}
	if got := shown(Select(v, Query{Policy: PolicyV1})); got != "1 2" {
		t.Errorf("v1 shows %q, want all healthy", got)
	}
}

func TestSelectCandidates(t *testing.T) {
	v := viewOf(ServiceInfo{}, "1 2d 3u 4@c1")
	for _, tt := range []struct {
		clusters []string
		want     int
	}{{nil, 4}, {[]string{"DEFAULT"}, 3}, {[]string{"c2"}, 0}, {[]string{"c9"}, 0}} {
		if got := Select(v, Query{Clusters: tt.clusters, HealthyOnly: true}).Candidates; got != tt.want {
			t.Errorf("%v: %d candidates, want %d", tt.clusters, got, tt.want)
		}
	}
}

func TestNewSelector(t *testing.T) {
	for _, tt := range []struct {
		kind, expression string
		labels           string // joined by commas; "refused" when the selector is
	}{
		{"", "", ""},
		{"none", "anything", ""},
		{"label", "", ""},
		{"label", "  ", ""},
		{"label", "CONSUMER.label.zone = PROVIDER.label.zone", "zone"},
		{"label", "CONSUMER.label.a=PROVIDER.label.a & CONSUMER.label.b\t=\nPROVIDER.label.b", "a,b"},
		{"label", "CONSUMER.label.a=PROVIDER.label.b", "refused"},
		{"label", "CONSUMER.label.=PROVIDER.label.", "refused"},
		{"label", "CONSUMER.label.a=PROVIDER.label.a=x", "refused"},
		{"label", "CONSUMER.label.a=PROVIDER.label.a&", "refused"},
		{"label", "CONSUMER.label.a>PROVIDER.label.a", "refused"},
		{"label", "PROVIDER.label.a=CONSUMER.label.a", "refused"},
		{"LABEL", "", "refused"},
		{"zzz", "", "refused"},
		{"label", strings.Repeat(" ", maxExpression+1), "refused"},
	} {
		got, err := NewSelector(tt.kind, tt.expression)
		var refusal *Error
		switch {
		case tt.labels == "refused":
			if !errors.As(err, &refusal) || refusal.Code != InvalidSelector {
				t.Errorf("%s %q: got %+v, %v; want it refused", tt.kind, tt.expression, got, err)
			}
		case err != nil || strings.Join(got.Labels, ",") != tt.labels:
			t.Errorf("%s %q: got %+v, %v; want the labels %q", tt.kind, tt.expression, got, err, tt.labels)
		}
	}
}

func FuzzNewSelector(f *testing.F) {
	f.Add("label", "CONSUMER.label.zone = PROVIDER.label.zone & CONSUMER.label.b=PROVIDER.label.b")
	f.Add("none", "")
	f.Fuzz(func(t *testing.T, kind, expression string) {
		s, err := NewSelector(kind, expression)
		if err != nil {
			return
		}
		var terms []string
		for _, label := range s.Labels {
			terms = append(terms, "CONSUMER.label."+label+"=PROVIDER.label."+label)
		}
		text := strings.Join(terms, "&")
		if len(text) > maxExpression {
			return
		}
		again, err := NewSelector(s.Type, text)
		if err != nil || !slices.Equal(again.Labels, s.Labels) {
			t.Errorf("%q has the labels %q, and they give %q, %v", expression, s.Labels, again.Labels, err)
		}
	})
}

func TestSelectByLabels(t *testing.T) {
	labels := map[string]map[string]string{
		"10.9.9.1": {"zone": "a", "rack": "1"},
		"10.9.9.2": {"zone": "c"},
		"10.9.9.3": {"zone": " "},
		"10.0.0.3": {"zone": "a", "rack": "1"},
	}
	selector, err := NewSelector(SelectorLabel, "CONSUMER.label.zone=PROVIDER.label.zone & CONSUMER.label.rack=PROVIDER.label.rack")
	if err != nil {
		t.Fatal(err)
	}
	v := &View{Info: &ServiceInfo{Selector: selector}}
	for n, m := range []map[string]string{{"zone": "a", "rack": "1"}, {"zone": "b"}, {}, {"zone": "a", "rack": "2"}} {
		v.Instances = append(v.Instances, &Instance{
			IP: "10.0.0." + strconv.Itoa(n+1), Port: int32(n + 1), Healthy: true, Enabled: true, Metadata: NewMetadata(m),
		})
	}
	of := func(ip string) map[string]string { return labels[ip] }
	for _, tt := range []struct{ consumer, want string }{
		{"10.9.9.1", "1 3"},     // from metadata, and from the static labels
		{"10.9.9.2", "1 2 3 4"}, // nobody matches: all
		{"10.9.9.3", "1 2 3 4"}, // a blank label asks for nothing
		{"10.9.9.9", "1 2 3 4"}, // no labels
		{"", "1 2 3 4"},         // the asker is not known
	} {
		got := Explain(v, Query{ConsumerIP: tt.consumer, Labels: of}, func(i *Instance, verdict Verdict) {
			kept := slices.Contains(strings.Fields(tt.want), strconv.Itoa(int(i.Port)))
			if kept != (verdict == Kept) || !kept && verdict != LabelMismatch {
				t.Errorf("%q: instance %d is %s", tt.consumer, i.Port, verdict)
			}
		})
		if shown(got) != tt.want {
			t.Errorf("%q: got %q, want %q", tt.consumer, shown(got), tt.want)
		}
	}
	if got := Select(v, Query{ConsumerIP: "10.9.9.1"}); len(got.Instances) != 4 {
		t.Errorf("without labels got %q, want all", shown(got))
	}
}

// Explain answers as Select does, and its verdicts say the same.
func TestExplainAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var words []string
		for port := range rng.IntN(6) {
			words = append(words, strconv.Itoa(port+1)+[]string{"", "", "u", "d", "ud"}[rng.IntN(5)]+[]string{"", "", "@c1"}[rng.IntN(3)])
		}
		v := viewOf(ServiceInfo{ProtectThreshold: rng.Float32(), Set: rng.IntN(2) == 0}, strings.Join(words, " "))
		q := Query{
			HealthyOnly: rng.IntN(2) == 0, WithDisabled: rng.IntN(4) == 0, Policy: Policy(rng.IntN(2)),
			Clusters: [][]string{nil, {"c1"}, {"c1", "DEFAULT"}, {"c9"}}[rng.IntN(4)],
		}
		want := Select(v, q)
		seen := 0
		got := Explain(v, q, func(i *Instance, verdict Verdict) {
			seen++
			kept := verdict == Kept || verdict == KeptByThreshold
			if kept != slices.Contains(want.Instances, i) || kept && want.Healthy(i) != (i.Healthy || verdict == KeptByThreshold) {
				t.Fatalf("%q %+v: verdict %q on %d disagrees with %q", words, q, verdict, i.Port, shown(want))
			}
		})
		if shown(got) != shown(want) || got.Protected != want.Protected || got.Candidates != want.Candidates || seen != len(v.Instances) {
			t.Fatalf("%q %+v: explained %q, selected %q", words, q, shown(got), shown(want))
		}
	}
}
