package generations

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// The tests here are trials made from public reports on what differs between the
// ways into a registry.

// try makes a call with everything in a form, and returns its status and body.
func (s *site) try(t *testing.T, method, path string, params url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(params.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// write is an instance on its way into the registry.
type write struct {
	service, group, namespace, cluster, ip string
	weight                                 float64
	metadata                               map[string]string
}

// ordinary is a write that nobody refuses.
func ordinary(service string) write {
	return write{service: service, group: "g", namespace: "public", cluster: "DEFAULT", ip: "10.0.0.1", weight: 1}
}

// instance is its JSON, as gRPC clients and beats carry it.
func (w *write) instance(t *testing.T, more map[string]any) string {
	t.Helper()
	members := map[string]any{"ip": w.ip, "port": 80, "weight": w.weight, "metadata": w.metadata}
	for name, value := range more {
		members[name] = value
	}
	return jsonOf(t, members)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writers are the calls that register an instance, each with what it says when it
// refuses; the text is empty when it does not.
func (s *site) writers() map[string]func(*testing.T, write) string {
	form := func(method, path string) func(*testing.T, write) string {
		return func(t *testing.T, w write) string {
			params := query("serviceName="+w.service, "groupName="+w.group, "namespaceId="+w.namespace)
			if strings.HasSuffix(path, "/beat") {
				params.Set("beat", w.instance(t, map[string]any{"cluster": w.cluster}))
			} else {
				for name, value := range map[string]string{
					"ip": w.ip, "port": "80", "clusterName": w.cluster, "weight": fmt.Sprint(w.weight), "metadata": jsonOf(t, w.metadata),
				} {
					params.Set(name, value)
				}
			}
			status, body := s.try(t, method, path, params)
			return refusal(status == http.StatusOK, status == http.StatusBadRequest, body)
		}
	}
	grpc := func(request, members string) func(*testing.T, write) string {
		return func(t *testing.T, w write) string {
			one := w.instance(t, map[string]any{"healthy": true, "enabled": true, "ephemeral": true, "clusterName": w.cluster})
			answer := s.grpc.Call(t, request, fmt.Sprintf(`{"namespace":%q,"serviceName":%q,"groupName":%q,`+members+`}`,
				w.namespace, w.service, w.group, one))
			code := answer.Members(t)
			return refusal(code["resultCode"] == 200.0, code["errorCode"] == 400.0, string(answer.Body))
		}
	}
	return map[string]func(*testing.T, write) string{
		"v1 register": form("POST", "/v1/ns/instance"),
		"v1 beat":     form("PUT", "/v1/ns/instance/beat"),
		"v2 register": form("POST", "/v2/ns/instance"),
		"v3 client":   form("POST", "/v3/client/ns/instance"),
		"v3 admin":    form("POST", "/v3/admin/ns/instance"),
		"gRPC":        grpc("InstanceRequest", `"type":"registerInstance","instance":%s`),
		"gRPC batch":  grpc("BatchInstanceRequest", `"type":"batchRegisterInstance","instances":[%s]`),
	}
}

// refusal is the text of an answer that is no success, marked when it does not say
// that the caller is at fault.
func refusal(ok, clear bool, text string) string {
	switch {
	case ok:
		return ""
	case clear:
		return text
	default:
		return "not as bad input: " + text
	}
}

// TestMetadataLimitIsOne: every way in counts the characters of metadata alike,
// and one that refuses leaves nothing behind.
func TestMetadataLimitIsOne(t *testing.T) {
	t.Parallel()
	const limit = 1000
	s := open(t, func(c *server.Config) { c.Limits.MetadataLimit = limit })
	n := 0
	for how, register := range s.writers() {
		for _, letter := range []string{"x", "漢", `"`, "😀"} { // 😀 is one character, as for a reader
			for _, length := range []int{limit, limit + 1} {
				n++
				w := ordinary(fmt.Sprintf("m%d", n))
				w.metadata = map[string]string{"k": strings.Repeat(letter, length-1)}
				got := register(t, w)
				if fits := length == limit; fits != (got == "") {
					t.Errorf("%s, %d times %s: %.200q", how, length, letter, got)
				}
				if got != "" && (!strings.Contains(got, "etadata") || !strings.Contains(got, fmt.Sprint(limit)) || strings.HasPrefix(got, "not")) {
					t.Errorf("%s does not name metadata and the limit: %.200q", how, got)
				}
				if got != "" {
					s.gone(t, w.service, how)
				}
			}
		}
	}
}

// TestNamesOf2xAtTheirLimits: calls of 2.x and later take names of the greatest
// length and refuse one character more, and so do those that only read.
func TestNamesOf2xAtTheirLimits(t *testing.T) {
	t.Parallel()
	s := open(t)
	for how, register := range s.writers() {
		if strings.HasPrefix(how, "v1") {
			continue // has limits of its own
		}
		for _, limit := range []struct {
			param string
			most  int
			set   func(*write, string)
		}{
			{"serviceName", 512, func(w *write, name string) { w.service = name }},
			{"group", 128, func(w *write, name string) { w.group = name }},
			{"cluster", 64, func(w *write, name string) { w.cluster = name }},
			{"namespaceId", 64, func(w *write, name string) { w.namespace = name }},
			{"ip", 128, func(w *write, name string) { w.ip = name }},
		} {
			for _, length := range []int{limit.most, limit.most + 1} {
				w := ordinary("limits")
				limit.set(&w, strings.Repeat("n", length))
				got := register(t, w)
				if fits := length == limit.most; fits != (got == "") || !fits && !strings.Contains(got, fmt.Sprintf("Param '%s", limit.param)) {
					t.Errorf("%s with %d characters of %s: %.200q", how, length, limit.param, got)
				}
			}
		}
	}
}

// TestWeightsAreExact: what is registered is shown by all, also where it says "no
// traffic". Only 1.x raises what lies between that and 0.01 (recorded:
// reg-weight-edge).
func TestWeightsAreExact(t *testing.T) {
	t.Parallel()
	s := open(t)
	n := 0
	for how, register := range s.writers() {
		for _, sent := range []float64{0, 0.001, 0.01, 0.5, 10000} {
			n++
			want := sent
			if sent == 0.001 && strings.HasPrefix(how, "v1") {
				want = 0.01
			}
			w := ordinary(fmt.Sprintf("w%d", n))
			w.weight = sent
			if got := register(t, w); got != "" {
				t.Errorf("%s of weight %v: %s", how, sent, got)
			}
			s.shows(t, w.service, fmt.Sprintf("%s of weight %v", how, sent), &instance{want, true, "{}"})
		}
	}
}

// TestGroupsSurviveARestart: one name in many groups, made by a persistent
// instance or by hand, is in its group alone after each restart.
func TestGroupsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	groups := []string{"g1", "g2", "g.3", "g-4", "g:5"}
	for round := range 3 {
		running := servertest.New(t, servertest.WithDataDir(dir))
		s := connect(t, running)
		if round == 0 {
			for _, group := range groups {
				s.http(t, "POST", "/v1/ns/instance", query("serviceName=held", "groupName="+group, "ip=127.0.0.9", "port=1", "ephemeral=false"))
				s.http(t, "POST", "/v1/ns/service", query("serviceName=made", "groupName="+group))
			}
		}
		for _, group := range groups {
			if got := s.names(t, group); !slices.Equal(got, []string{"held", "made"}) {
				t.Errorf("round %d, group %s: %v", round, group, got)
			}
			list := s.http(t, "GET", "/v1/ns/instance/list", query("serviceName=held", "groupName="+group))
			if len(found(t, list)) != 1 {
				t.Errorf("round %d, group %s: %s", round, group, list)
			}
		}
		if got := s.names(t, "DEFAULT_GROUP"); len(got) > 0 {
			t.Errorf("round %d: %v came into the default group", round, got)
		}
		s.grpc.Close()
		running.Stop(t)
	}
}

// names lists the services of a group.
func (s *site) names(t *testing.T, group string) []string {
	t.Helper()
	var list struct{ Doms []string }
	answer := s.http(t, "GET", "/v1/ns/service/list", query("groupName="+group, "pageNo=1", "pageSize=100"))
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return list.Doms
}
