package v1

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The tests here are trials made from public reports on who an instance is: how
// its service is spelt, by what it is found, and what an edit leaves as it was.

// TestBothSpellingsRead: a bare name and one with the default group are the same
// service on every call that reads.
func TestBothSpellingsRead(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=orders&ip=1.1.1.1&port=1&metadata=a=1")
	s.list(t, "serviceName=orders&udpPort=50000&clientIP=127.0.0.1", "User-Agent", "Nacos-Java-Client:v1.4.1")
	moments := regexp.MustCompile(`"lastBeat":\d+`)
	for path, params := range map[string]string{
		"/instance/list":       "",
		"/instance":            "&ip=1.1.1.1&port=1",
		"/service":             "",
		"/service/subscribers": "",
		"/catalog/service":     "",
		"/catalog/instances":   "&clusterName=DEFAULT&pageNo=1&pageSize=10",
	} {
		read := func(name string) string {
			got := s.call(t, "GET", path, "serviceName="+name+params)
			if got.status != http.StatusOK || !strings.Contains(got.body, "1.1.1.1") && !strings.Contains(got.body, "orders") {
				t.Errorf("%s of %s: got %d %s", path, name, got.status, got.body)
			}
			return moments.ReplaceAllString(strings.ReplaceAll(got.body, "DEFAULT_GROUP@@", ""), "")
		}
		if bare, grouped := read("orders"), read("DEFAULT_GROUP@@orders"); bare != grouped {
			t.Errorf("%s: a bare name shows\n%s\nand one with its group\n%s", path, bare, grouped)
		}
	}
	want(t, "statuses", s.call(t, "GET", "/instance/statuses", "key=public%23%23DEFAULT_GROUP@@orders"), 200, `{"ips":["1.1.1.1:1_true"]}`)
}

// TestBothSpellingsWrite: what was registered under one spelling of its group is
// found, renewed, changed and removed under the other.
func TestBothSpellingsWrite(t *testing.T) {
	s := newTestServer(t)
	spellings := []string{"serviceName=g7@@pay", "serviceName=pay&groupName=g7", "serviceName=g7@@pay&groupName=g7"}
	for _, registered := range spellings {
		for _, other := range spellings {
			const instance = "&ip=1.1.1.1&port=1"
			s.ok(t, "POST", "/instance", registered+instance)
			want(t, "beat of "+other, s.call(t, "PUT", "/instance/beat", other+instance), 200, beatOK)
			s.ok(t, "PUT", "/instance", other+instance+"&weight=3")
			s.ok(t, "PATCH", "/instance", other+instance+"&metadata=k=v")
			want(t, "detail of "+other, s.call(t, "GET", "/instance", other+instance), 200, `"weight":3.0`)
			if got := s.list(t, other); len(got.Hosts) != 1 || got.Hosts[0].Metadata["k"] != "v" {
				t.Errorf("%s shows as %s: %+v", registered, other, got.Hosts)
			}
			s.ok(t, "DELETE", "/instance", other+instance)
			if got := s.list(t, registered); len(got.Hosts) != 0 {
				t.Errorf("%s deregistered as %s is still there: %+v", registered, other, got.Hosts)
			}
		}
	}
	if services := s.store.Counts().Services; services != 1 {
		t.Errorf("got %d services, want the one of g7", services)
	}
}

// TestDeregistrationGoesByTheAddress: whatever else a client says of an instance
// when it leaves, it leaves.
func TestDeregistrationGoesByTheAddress(t *testing.T) {
	s := newTestServer(t)
	for _, other := range []string{
		"", "&weight=9", "&weight=zzz", "&metadata=a=2", "&metadata=zzz", "&healthy=false", "&enabled=false", "&enable=no", "&app=x",
		"&weight=9&metadata=%7B%22a%22:%222%22%7D&healthy=false&enabled=false&app=x",
	} {
		s.ok(t, "POST", "/instance", "serviceName=leave&ip=1.1.1.1&port=1&weight=2&metadata=a=1")
		got := s.call(t, "DELETE", "/instance", "serviceName=leave&ip=1.1.1.1&port=1"+other)
		gone := s.find("leave", "1.1.1.1", 1) == nil
		if (got.status == http.StatusOK) != gone {
			t.Errorf("%s: answered %d %q, and gone is %v", other, got.status, got.body, gone)
		}
		if readable := !strings.Contains(other, "zzz"); readable && !gone {
			t.Errorf("%s: the instance stays", other)
		}
	}
}

// TestEditsKeepTheKind: an edit that does not name a kind makes no twin of the other
// one, and what it sets is kept.
func TestEditsKeepTheKind(t *testing.T) {
	s := newTestServer(t)
	for _, kind := range []string{"false", "true"} {
		service := "serviceName=kind-" + kind
		for port := range 3 {
			s.ok(t, "POST", "/instance", fmt.Sprintf("%s&ip=127.0.0.9&port=%d&ephemeral=%s", service, port+1, kind))
		}
		for _, edit := range []string{
			"PUT ", "PUT &ephemeral=" + kind, "PATCH ", "PATCH &ephemeral=" + kind,
			"PUT &metadata=a=1", "PUT &enabled=false", "PATCH &metadata=b=2", "PUT &healthy=true",
		} {
			method, params, _ := strings.Cut(edit, " ")
			s.ok(t, method, "/instance", service+"&ip=127.0.0.9&port=2&weight=7"+params)
			rows := s.kindRows(t, service)
			if len(rows) != 3 {
				t.Fatalf("%s of a %s instance: got %d rows, want 3: %+v", edit, kind, len(rows), rows)
			}
			for _, row := range rows {
				if fmt.Sprint(row.Ephemeral) != kind || row.Port == 2 && row.Weight != 7 || row.Port != 2 && row.Weight != 1 {
					t.Errorf("%s of a %s instance: %+v", edit, kind, row)
				}
			}
		}
	}
}

// listedKind is what people see of an instance.
type listedKind struct {
	Port      int
	Weight    float64
	Ephemeral bool
}

func (s *testServer) kindRows(t testing.TB, service string) []listedKind {
	t.Helper()
	got := s.call(t, "GET", "/catalog/instances", service+"&clusterName=DEFAULT&pageNo=1&pageSize=10")
	var list struct{ List []listedKind }
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
		t.Fatalf("catalog/instances %s: got %d %s (%v)", service, got.status, got.body, err)
	}
	return list.List
}

// TestUnescapedMetadata: JSON that was pasted into a target as it is gets a clear
// refusal and changes nothing, in part or whole; escaped, it is taken.
func TestUnescapedMetadata(t *testing.T) {
	s := newTestServer(t)
	const instance = "serviceName=raw&ip=1.1.1.1&port=1"
	s.ok(t, "POST", "/instance", instance+"&metadata=old=1")
	for _, metadata := range []string{`{"app":"order","plugins":"A,B"}`, `{"app": "order"}`, `{app:order}`} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PUT /nacos/v1/ns/instance?%s&metadata=%s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", instance, metadata)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", metadata, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = conn.Close()
		if err != nil || resp.StatusCode != http.StatusBadRequest || len(body) == 0 {
			t.Errorf("%s: got %d %q (%v), want 400 with a reason", metadata, resp.StatusCode, body, err)
		}
		if i := s.find("raw", "1.1.1.1", 1); i.Metadata != `{"old":"1"}` {
			t.Errorf("%s: the metadata is now %s", metadata, i.Metadata)
		}
	}
	s.ok(t, "PUT", "/instance", instance+"&metadata="+escape(`{"app":"order","plugins":"A,B"}`))
	if i := s.find("raw", "1.1.1.1", 1); i.Metadata != `{"app":"order","plugins":"A,B"}` {
		t.Errorf("escaped: the metadata is now %s", i.Metadata)
	}
}

// TestNamesAtTheirLimits: a name of the greatest length is taken by every call that
// writes, and one character more by none, counted in characters.
func TestNamesAtTheirLimits(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct {
		param string
		most  int
		calls string // which take it
	}{
		{"serviceName", 4096, "instance beat service"},
		{"groupName", 4096, "instance beat service"},
		{"namespaceId", 128, "instance beat service"},
		{"clusterName", 64, "instance beat"},
		{"ip", 128, "instance beat"},
	} {
		for n, call := range strings.Fields(tt.calls) {
			for _, length := range []int{tt.most, tt.most + 1} {
				values := map[string]string{
					"serviceName": fmt.Sprintf("%s-%d-%d", tt.param, n, length), "groupName": registry.DefaultGroup,
					"namespaceId": registry.DefaultNamespace, "clusterName": registry.DefaultCluster, "ip": "1.1.1.1",
				}
				values[tt.param] = strings.Repeat(string(rune('a'+n)), length)
				got := s.writeNames(t, call, values)
				if (got.status == http.StatusOK) != (length == tt.most) {
					t.Errorf("%s with %d characters of %s: got %d %.200q", call, length, tt.param, got.status, got.body)
				}
				if got.status != http.StatusOK {
					want(t, call, got, http.StatusBadRequest, "Param '"+tt.param+"' is illegal")
				}
			}
		}
	}
}

// writeNames makes one of the calls that write, with an instance of those names.
func (s *testServer) writeNames(t testing.TB, call string, v map[string]string) answer {
	t.Helper()
	service := fmt.Sprintf("serviceName=%s&groupName=%s&namespaceId=%s", v["serviceName"], v["groupName"], v["namespaceId"])
	switch call {
	case "instance":
		return s.form(t, "POST", "/instance", fmt.Sprintf("%s&clusterName=%s&ip=%s&port=1", service, v["clusterName"], v["ip"]))
	case "beat":
		return s.form(t, "PUT", "/instance/beat", service+"&beat="+escape(fmt.Sprintf(`{"ip":%q,"port":1,"cluster":%q}`, v["ip"], v["clusterName"])))
	default:
		return s.form(t, "POST", "/service", service)
	}
}
