package generations

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
)

// site is a server with clients of all generations.
type site struct {
	url    string
	grpc   *grpctest.Client
	client *http.Client
}

func open(t *testing.T, options ...servertest.Option) *site {
	t.Helper()
	return connect(t, servertest.New(t, options...))
}

// connect makes a site of a running server.
func connect(t *testing.T, running *servertest.Server) *site {
	t.Helper()
	at := &site{running.URL() + "/nacos", grpctest.Dial(t, running.Addr()), &http.Client{Timeout: grpctest.Patience}}
	setUp(t, at.grpc)
	return at
}

// http makes a call with everything in the query, which must succeed.
func (s *site) http(t *testing.T, method, path string, params url.Values) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path+"?"+params.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s?%s: %d %s %v", method, path, params.Encode(), resp.StatusCode, body, err)
	}
	return string(body)
}

// query returns parameters from name=value texts.
func query(texts ...string) url.Values {
	params := url.Values{}
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		params.Set(name, value)
	}
	return params
}

// instance is what every list says of an instance.
type instance struct {
	Weight   float64
	Healthy  bool
	Metadata string // as JSON
}

// readers are the calls that show one instance, by generation.
func (s *site) readers(t *testing.T, service string) map[string]string {
	t.Helper()
	one := []string{"serviceName=" + service, "groupName=g", "ip=10.0.0.1", "port=80"}
	grouped := []string{"serviceName=g@@" + service, "pageNo=1", "pageSize=10"}
	list := query("serviceName="+service, "groupName=g")
	return map[string]string{
		"v1 list":       s.http(t, "GET", "/v1/ns/instance/list", list),
		"v1 instance":   s.http(t, "GET", "/v1/ns/instance", query(append(one, "cluster=DEFAULT")...)),
		"v1 catalog":    s.http(t, "GET", "/v1/ns/catalog/instances", query(append(grouped, "clusterName=DEFAULT")...)),
		"v2 list":       s.http(t, "GET", "/v2/ns/instance/list", list),
		"v2 instance":   s.http(t, "GET", "/v2/ns/instance", query(one...)),
		"v2 catalog":    s.http(t, "GET", "/v2/ns/catalog/instances", query(grouped...)),
		"v3 client":     s.http(t, "GET", "/v3/client/ns/instance/list", list),
		"v3 admin list": s.http(t, "GET", "/v3/admin/ns/instance/list", list),
		"v3 admin":      s.http(t, "GET", "/v3/admin/ns/instance", query(one...)),
		"v3 console":    s.http(t, "GET", "/v3/console/ns/instance/list", query(append(one[:2:2], "pageNo=1", "pageSize=10")...)),
		"gRPC": string(s.grpc.Call(t, "ServiceQueryRequest",
			fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"g","cluster":"","healthyOnly":false,"udpPort":0}`, service)).Body),
	}
}

// found returns the instances in an answer, wherever they stand in it.
func found(t *testing.T, answer string) []instance {
	t.Helper()
	var all any
	if err := json.Unmarshal([]byte(answer), &all); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	var list []instance
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				look(item)
			}
		case map[string]any:
			weight, weighed := v["weight"].(float64)
			if !weighed {
				for _, member := range v {
					look(member)
				}
				return
			}
			metadata, err := json.Marshal(v["metadata"])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, instance{weight, v["healthy"] == true, string(metadata)})
		}
	}
	look(all)
	return list
}

// shows holds every reader to one instance that looks so.
func (s *site) shows(t *testing.T, service, after string, want *instance) {
	t.Helper()
	for reader, answer := range s.readers(t, service) {
		list := found(t, answer)
		if reader == "v1 list" && !want.Healthy && len(list) == 1 && list[0].Healthy {
			continue // when nobody is healthy, clients of 1.x are told that all are
		}
		if len(list) != 1 || list[0] != *want {
			t.Errorf("after %s, %s shows %+v, want %+v", after, reader, list, *want)
		}
	}
}

// gone holds the lists to no instance.
func (s *site) gone(t *testing.T, service, after string) {
	t.Helper()
	list := query("serviceName="+service, "groupName=g")
	for _, path := range []string{"/v1/ns/instance/list", "/v2/ns/instance/list", "/v3/client/ns/instance/list"} {
		if answer := s.http(t, "GET", path, list); len(found(t, answer)) != 0 {
			t.Errorf("after %s: %s", after, answer)
		}
	}
}

// step is a change through one API, and what everybody sees then.
type step struct {
	call   string // method, path
	params []string
	want   instance
}

// base has the names of an instance.
func base(service string, more ...string) []string {
	return append([]string{"serviceName=" + service, "groupName=g", "ip=10.0.0.1", "port=80"}, more...)
}

// TestRegistered: whoever registers, everybody shows the same, and whoever
// deregisters takes it from all.
func TestRegistered(t *testing.T) {
	t.Parallel()
	s := open(t)
	const metadata = `metadata={"a":"1"}`
	registrations := map[string]func(t *testing.T, service string){}
	for _, path := range []string{"/v1/ns/instance", "/v2/ns/instance", "/v3/client/ns/instance", "/v3/admin/ns/instance"} {
		registrations[path] = func(t *testing.T, service string) {
			s.http(t, "POST", path, query(base(service, "weight=2.5", metadata)...))
		}
	}
	for _, path := range []string{"/v1/ns/instance/beat", "/v2/ns/instance/beat"} {
		registrations[path] = func(t *testing.T, service string) {
			s.http(t, "PUT", path, query("serviceName=g@@"+service, fmt.Sprintf(
				`beat={"cluster":"DEFAULT","ip":"10.0.0.1","metadata":{"a":"1"},"port":80,"serviceName":"g@@%s","weight":2.5}`, service)))
		}
	}
	removals := []string{"/v1/ns/instance", "/v2/ns/instance", "/v3/client/ns/instance", "/v3/admin/ns/instance"}
	n := 0
	for how, register := range registrations {
		for _, removal := range removals {
			n++
			service := fmt.Sprintf("r%d", n)
			register(t, service)
			s.shows(t, service, how, &instance{2.5, true, `{"a":"1"}`})
			s.http(t, "DELETE", removal, query(base(service)...))
			s.gone(t, service, how+" and DELETE "+removal)
		}
	}
	grpc := func(kind string) {
		answer := s.grpc.Call(t, "InstanceRequest", fmt.Sprintf(`{"namespace":"public","serviceName":"stream","groupName":"g","type":%q,`+
			`"instance":{"ip":"10.0.0.1","port":80,"weight":2.5,"healthy":true,"enabled":true,"ephemeral":true,"metadata":{"a":"1"}}}`, kind))
		if answer.Members(t)["resultCode"] != 200.0 {
			t.Fatalf("%s: %s", kind, answer.Body)
		}
	}
	grpc("registerInstance")
	s.shows(t, "stream", "gRPC", &instance{2.5, true, `{"a":"1"}`})
	// What HTTP says of it takes nothing from the client that holds it.
	for _, removal := range removals {
		s.http(t, "DELETE", removal, query(base("stream")...))
	}
	s.shows(t, "stream", "DELETE over HTTP", &instance{2.5, true, `{"a":"1"}`})
	grpc("deregisterInstance")
	s.gone(t, "stream", "gRPC")
}

// TestChanged: whoever changes an instance, everybody shows the same. 1.x replaces
// its metadata, 2.x and 3.x lay entries over what was registered: those of the
// latest PUT.
func TestChanged(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, registrar := range []string{"/v1/ns/instance", "/v2/ns/instance", "/v3/client/ns/instance"} {
		service := "c" + strings.ReplaceAll(registrar, "/", "-")
		for _, step := range []step{
			{"POST " + registrar, base(service, "metadata=a=1,b=1"), instance{1, true, `{"a":"1","b":"1"}`}},
			{"PUT /v2/ns/instance", base(service, "weight=2", "metadata=b=2,c=2"), instance{2, true, `{"a":"1","b":"2","c":"2"}`}},
			{"PUT /v3/admin/ns/instance", base(service, "weight=3", "metadata=c=3"), instance{3, true, `{"a":"1","b":"1","c":"3"}`}},
			{"PUT /v1/ns/instance", base(service, "weight=4", "metadata=d=4"), instance{4, true, `{"d":"4"}`}},
			{"PUT /v3/admin/ns/instance/partial", base(service, "weight=5"), instance{5, true, `{"d":"4"}`}},
			{"PATCH /v1/ns/instance", base(service, "weight=6"), instance{6, true, `{"d":"4"}`}},
			{"PUT /v1/ns/instance/metadata/batch", base(service, "consistencyType=ephemeral", `metadata={"e":"7"}`), instance{6, true, `{"d":"4","e":"7"}`}},
			{"PUT /v2/ns/instance/metadata/batch", base(service, `metadata={"f":"8"}`), instance{6, true, `{"d":"4","e":"7","f":"8"}`}},
			{"DELETE /v3/admin/ns/instance/metadata/batch", base(service, `metadata={"e":""}`), instance{6, true, `{"d":"4","f":"8"}`}},
		} {
			method, path, _ := strings.Cut(step.call, " ")
			s.http(t, method, path, query(step.params...))
			s.shows(t, service, registrar+" and "+step.call, &step.want)
		}
	}
}

// TestPersistent: a persistent instance and its health by hand.
func TestPersistent(t *testing.T) {
	t.Parallel()
	s := open(t)
	for n, registrar := range []string{"/v1/ns/instance", "/v2/ns/instance", "/v3/admin/ns/instance"} {
		service := fmt.Sprintf("p%d", n)
		s.http(t, "POST", registrar, query(base(service, "ephemeral=false")...))
		s.shows(t, service, registrar, &instance{1, true, `{}`})
		s.http(t, "PUT", "/v3/admin/ns/cluster", query("serviceName="+service, "groupName=g", "clusterName=DEFAULT", "checkPort=80",
			"useInstancePort4Check=true", `healthChecker={"type":"NONE"}`))
		for _, path := range []string{"/v2/ns/health/instance", "/v1/ns/health/instance", "/v3/admin/ns/health/instance"} {
			if n > 0 && path != "/v1/ns/health/instance" {
				continue // 2.x and 3.x cannot, for services that they made (recorded: v2-health-none)
			}
			for _, healthy := range []bool{true, false} {
				s.http(t, "PUT", path, query(base(service, fmt.Sprint("healthy=", healthy))...))
				s.shows(t, service, path, &instance{1, healthy, `{}`})
			}
		}
		s.http(t, "DELETE", registrar, query(base(service, "ephemeral=false")...))
		s.gone(t, service, "DELETE "+registrar)
	}
}
