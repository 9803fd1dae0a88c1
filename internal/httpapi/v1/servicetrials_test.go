package v1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests here are trials made from public reports on lists and searches.

// names returns the service names of a GET /catalog/services answer, and the
// count.
func (s *testServer) catalogNames(t testing.TB, params string) (names []string, count int) {
	t.Helper()
	got := s.call(t, "GET", "/catalog/services", params)
	var list struct {
		ServiceList []struct{ Name string }
		Count       int
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != 200 {
		t.Fatalf("catalog/services %s: got %d %s (%v)", params, got.status, got.body, err)
	}
	for _, one := range list.ServiceList {
		names = append(names, one.Name)
	}
	return names, list.Count
}

// TestSearchByGroup: either half alone, both, none; contained, and case counts.
func TestSearchByGroup(t *testing.T) {
	s := newTestServer(t)
	for _, grouped := range []string{"g1@@pay", "g2@@pay", "g1@@ship"} {
		s.ok(t, "POST", "/service", "serviceName="+grouped)
	}
	for _, tt := range []struct {
		params string
		want   int
	}{
		{"groupNameParam=g1&serviceNameParam=", 2},
		{"groupNameParam=&serviceNameParam=pay", 2},
		{"groupNameParam=g1&serviceNameParam=pay", 1},
		{"groupNameParam=&serviceNameParam=", 3},
		{"serviceNameParam=a", 2},
		{"serviceNameParam=PAY", 0},
		{"groupNameParam=G1", 0},
	} {
		names, count := s.catalogNames(t, "pageNo=1&pageSize=10&"+tt.params)
		if len(names) != tt.want || count != tt.want {
			t.Errorf("%s: got %v and a count of %d, want %d", tt.params, names, count, tt.want)
		}
	}
}

// TestSearchByPattern: no expression stalls the server or makes it fail.
func TestSearchByPattern(t *testing.T) {
	s := newTestServer(t)
	for _, name := range []string{"abc", "a.c"} {
		s.ok(t, "POST", "/service", "serviceName="+name)
	}
	for expression, found := range map[string]int{
		"[": 0, "(": 0, "*": 0, "a.c": 2, `a\.c`: 1, `\`: 0, "+": 0, "^a": 2, "^b": 0, "$": 2, "%": 0,
	} {
		names, _ := s.catalogNames(t, "pageNo=1&pageSize=10&serviceNameParam="+escape(expression))
		if len(names) != found {
			t.Errorf("%s: got %v, want %d", expression, names, found)
		}
	}
	began := time.Now()
	long := escape(strings.Repeat("(a+)+", 2000))
	want(t, "a long pattern", s.call(t, "GET", "/catalog/services", "pageNo=1&pageSize=10&serviceNameParam="+long), 400, "'serviceNameParam'")
	want(t, "a long pattern", s.call(t, "GET", "/service/names", "expr="+long), 400, "'expr'")
	want(t, "a broken one", s.call(t, "GET", "/service/names", "expr="+escape("(x")), 400, "'expr'")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("refusing took %v", took)
	}
}

// TestCountsOfServices: what the console shows of empty, sick and emptied ones.
func TestCountsOfServices(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/service", "serviceName=empty")
	s.ok(t, "POST", "/instance", "serviceName=two&ip=1.1.1.1&port=1&healthy=false")
	s.ok(t, "POST", "/instance", "serviceName=two&ip=1.1.1.1&port=2&enabled=false")
	for n, cluster := range []string{"a", "b", "b"} {
		s.ok(t, "POST", "/instance", fmt.Sprintf("serviceName=three&ip=127.0.0.9&port=%d&ephemeral=false&clusterName=%s", n+1, cluster))
	}
	s.ok(t, "POST", "/instance", "serviceName=gone&ip=1.1.1.1&port=1")
	s.ok(t, "DELETE", "/instance", "serviceName=gone&ip=1.1.1.1&port=1")
	row := func(name string, clusters, instances, healthy int) string {
		return fmt.Sprintf(`{"name":%q,"groupName":"DEFAULT_GROUP","clusterCount":%d,"ipCount":%d,"healthyInstanceCount":%d,"triggerFlag":"false"}`,
			name, clusters, instances, healthy)
	}
	full := []string{row("three", 2, 3, 3), row("two", 1, 2, 1)}
	all := []string{row("empty", 0, 0, 0), row("gone", 0, 0, 0), full[0], full[1]}
	for param, rows := range map[string][]string{
		"": all, "&hasIpCount=false": all, "&hasIpCount=true": full, "&hasIpCount=1": full, "&hasIpCount=yes": full,
	} {
		wantBody := fmt.Sprintf(`{"serviceList":[%s],"count":%d}`, strings.Join(rows, ","), len(rows))
		if got := s.call(t, "GET", "/catalog/services", "pageNo=1&pageSize=10"+param); got.body != wantBody {
			t.Errorf("%s: got %s, want %s", param, got.body, wantBody)
		}
	}
}

// TestPagesAreStable: no page overlaps another or leaves a gap, and each comes
// out the same every time.
func TestPagesAreStable(t *testing.T) {
	s := newTestServer(t)
	const services, size = 50, 7
	var all []string
	for n := range services {
		all = append(all, fmt.Sprintf("svc-%02d", n))
	}
	for _, n := range []int{3, 1, 2, 0} { // in no order
		for i := n; i < services; i += 4 {
			s.ok(t, "POST", "/service", "serviceName="+all[i])
		}
	}
	for range 3 {
		var catalog, listed []string
		for number := 1; number <= services/size+1; number++ {
			params := fmt.Sprintf("pageNo=%d&pageSize=%d", number, size)
			names, count := s.catalogNames(t, params)
			catalog = append(catalog, names...)
			if count != services {
				t.Errorf("page %d: count %d, want %d", number, count, services)
			}
			listed = append(listed, s.doms(t, params)...)
		}
		if !slices.Equal(catalog, all) || !slices.Equal(listed, all) {
			t.Fatalf("pages of the catalog: %v\nof the list: %v\nwant %v", catalog, listed, all)
		}
	}
	if everything := s.doms(t, "pageNo=0&pageSize=2147483647"); !slices.Equal(everything, all) {
		t.Errorf("one page: got %v", everything)
	}
}

// doms returns the names of a GET /service/list answer.
func (s *testServer) doms(t testing.TB, params string) []string {
	t.Helper()
	got := s.call(t, "GET", "/service/list", params)
	var list struct{ Doms []string }
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != 200 {
		t.Fatalf("service/list %s: got %d %s (%v)", params, got.status, got.body, err)
	}
	return list.Doms
}

// TestOddServiceNames: what can be made can be deleted, and nothing else goes.
func TestOddServiceNames(t *testing.T) {
	s := newTestServer(t)
	for _, name := range []string{"{{1}}", "=1+1", "a<b>", "支付", "a/b", "providers:Greeter$I::"} {
		got := s.call(t, "POST", "/service", "serviceName="+escape(name))
		want(t, name, got, 400, "dom name can only have these characters")
		want(t, name, s.call(t, "DELETE", "/service", "serviceName="+escape(name)), 400, "specified service not exist")
	}
	for _, name := range []string{"providers:com.example.Greeter:1.0:", "a..b", "a_b-c.d:e", "a@b"} {
		s.ok(t, "POST", "/service", "serviceName="+escape(name))
		if got := s.doms(t, "pageNo=1&pageSize=10"); !slices.Equal(got, []string{name}) {
			t.Errorf("%s: listed as %v", name, got)
		}
		want(t, "with backslashes", s.call(t, "DELETE", "/service", "serviceName="+escape(`\`+name)), 400, "not exist")
		s.ok(t, "DELETE", "/service", "serviceName="+escape(name))
	}
	s.ok(t, "POST", "/service", "serviceName=o&groupName=g1")
	s.ok(t, "POST", "/service", "serviceName=o")
	s.ok(t, "DELETE", "/service", "serviceName=g1@@o")
	if got := s.doms(t, "pageNo=1&pageSize=10&groupName=*"); !slices.Equal(got, []string{"DEFAULT_GROUP@@o"}) {
		t.Errorf("after the delete of one: %v", got)
	}
	s.ok(t, "DELETE", "/service", "serviceName=o&groupName=DEFAULT_GROUP")
}

// TestRefusedServiceLeavesNothing: a selector that is refused makes no half of a
// service, and changes none.
func TestRefusedServiceLeavesNothing(t *testing.T) {
	s := newTestServer(t)
	for _, selector := range []string{`{"type":"nope"}`, `{bad`, `[]`, `{"type":1}`, `{"type":"label","expression":"x=y"}`} {
		if got := s.call(t, "POST", "/service", "serviceName=q&selector="+escape(selector)); got.status == 200 {
			t.Errorf("%s: got %q", selector, got.body)
		}
		if got := s.doms(t, "pageNo=1&pageSize=10"); len(got) > 0 {
			t.Errorf("%s: left %v", selector, got)
		}
	}
	label := "selector=" + escape(`{"type":"label","expression":"CONSUMER.label.site = PROVIDER.label.site"}`)
	s.ok(t, "POST", "/service", "serviceName=q&"+label)
	want(t, "again", s.call(t, "POST", "/service", "serviceName=q&"+label), 400, "already exists")
	before := s.call(t, "GET", "/service", "serviceName=q")
	want(t, "bad metadata", s.call(t, "PUT", "/service", "serviceName=q&protectThreshold=0.5&metadata=zzz"), 500, "metadata format incorrect")
	if after := s.call(t, "GET", "/service", "serviceName=q"); after.body != before.body {
		t.Errorf("a refused update changed %s to %s", before.body, after.body)
	}
	big := escape("k=" + strings.Repeat("v", 64<<10))
	for _, call := range []string{"POST /service?serviceName=big", "PUT /service?serviceName=q&protectThreshold=1"} {
		method, target, _ := strings.Cut(call, " ")
		path, params, _ := strings.Cut(target, "?")
		want(t, call, s.form(t, method, path, params+"&metadata="+big), 400, "'metadata'")
	}
}

// TestSubscribersOfAll: those over gRPC are listed beside those over UDP, and none
// is no error.
func TestSubscribersOfAll(t *testing.T) {
	s := newTestServer(t)
	for _, params := range []string{"serviceName=none", "serviceName=g@@none", "serviceName=none&groupName=g"} {
		want(t, params, s.call(t, "GET", "/service/subscribers", params), 200, `{"subscribers":[],"count":0}`)
	}
	s.list(t, "serviceName=svc&udpPort=50000&clientIP=127.0.0.1", "User-Agent", "Nacos-Java-Client:v1.4.1")
	s.list(t, "serviceName=svc&udpPort=50001&clientIP=::1&namespaceId=public2", "User-Agent", "Nacos-Go-Client:v1.1.4")
	got := s.call(t, "GET", "/service/subscribers", "serviceName=sv")
	want(t, "both namespaces begin with public", got, 200, `"addrStr":"[::1]:50001"`)
	want(t, "both", got, 200, `"count":2}`)
	want(t, "one", s.call(t, "GET", "/service/subscribers", "serviceName=sv&namespaceId=public2"), 200, `"count":1}`)
}
