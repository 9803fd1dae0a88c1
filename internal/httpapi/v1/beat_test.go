package v1

import (
	"fmt"
	"strings"
	"testing"
)

// beat sends a beat with a body.
func (s *testServer) beat(t testing.TB, params, body string) answer {
	t.Helper()
	return s.call(t, "PUT", "/instance/beat", params+"&beat="+escape(body))
}

const (
	beatOK      = `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`
	beatUnknown = `{"clientBeatInterval":5000,"code":20404}`
)

func TestFullBeatRegistersWhatItDescribes(t *testing.T) {
	s := newTestServer(t)
	got := s.beat(t, "serviceName=bb", `{"ip":"192.0.2.31","port":9102,"cluster":"c1","weight":4.5,"serviceName":"DEFAULT_GROUP@@bb","metadata":{"k":"v"}}`)
	want(t, "beat", got, 200, beatOK)
	h := s.list(t, "serviceName=bb").Hosts[0]
	if h.Cluster != "c1" || h.Weight != 4.5 || !h.Healthy || !h.Enabled || h.Metadata["k"] != "v" {
		t.Errorf("got %+v", h)
	}
	want(t, "bare beat", s.beat(t, "serviceName=bb2", `{"ip":"192.0.2.31","port":9102}`), 200, beatOK)
	h = s.list(t, "serviceName=bb2").Hosts[0]
	if h.Cluster != "DEFAULT" || h.Weight != 1 || len(h.Metadata) != 0 {
		t.Errorf("bare beat: got %+v, want the defaults", h)
	}
	want(t, "heavy beat", s.beat(t, "serviceName=bb3", `{"ip":"1.1.1.1","port":1,"weight":20000}`), 200, beatOK)
	want(t, "light-weight beat", s.beat(t, "serviceName=bb3", `{"ip":"1.1.1.1","port":2,"weight":-1}`), 200, beatOK)
	if hosts := s.list(t, "serviceName=bb3").Hosts; hosts[0].Weight != 10000 || hosts[1].Weight != 0 {
		t.Errorf("weights out of range: got %+v, want them brought into it", hosts)
	}
}

func TestBeatInterval(t *testing.T) {
	s := newTestServer(t)
	interval := func(port int) string {
		return s.call(t, "PUT", "/instance/beat", fmt.Sprintf("serviceName=iv&ip=1.1.1.1&port=%d", port)).body
	}
	s.ok(t, "POST", "/instance", "serviceName=iv&ip=1.1.1.1&port=1")
	s.ok(t, "POST", "/instance", "serviceName=iv&ip=1.1.1.1&port=2&metadata=preserved.heart.beat.interval=2000")
	s.ok(t, "POST", "/instance", "serviceName=iv&ip=1.1.1.1&port=3&metadata=preserved.heart.beat.interval=abc")
	for port, want := range map[int]string{
		1: beatOK, 2: `{"clientBeatInterval":2000,"code":10200,"lightBeatEnabled":true}`, 3: beatOK, 4: beatUnknown,
	} {
		if got := interval(port); got != want {
			t.Errorf("port %d: got %s, want %s", port, got, want)
		}
	}
	s.ok(t, "PUT", "/instance", "serviceName=iv&ip=1.1.1.1&port=2&metadata=preserved.heart.beat.interval=3000")
	if got := interval(2); !strings.Contains(got, `"clientBeatInterval":3000`) {
		t.Errorf("after an update: got %s, want 3000", got)
	}
}

func TestBeatOnlyRenews(t *testing.T) {
	s := newTestServer(t)
	const instance = "serviceName=op&ip=1.1.1.1&port=1"
	s.ok(t, "POST", "/instance", instance+"&metadata=v=1")
	s.ok(t, "PUT", "/instance", instance+"&metadata=v=2&weight=5&enabled=false")
	for range 5 {
		want(t, "beat", s.beat(t, instance, `{"ip":"1.1.1.1","port":1,"weight":1,"metadata":{"v":"1"}}`), 200, beatOK)
	}
	s.ok(t, "POST", "/instance", instance+"&metadata=v=1")
	i := s.find("op", "1.1.1.1", 1)
	if i.Metadata != `{"v":"2"}` || i.Weight != 5 || i.Enabled {
		t.Errorf("an operator's change is undone: %+v", *i)
	}
}

func TestBeatOfAPersistentInstance(t *testing.T) {
	s := newTestServer(t)
	const instance = "serviceName=pe&ip=127.0.0.9&port=9"
	s.ok(t, "POST", "/instance", instance+"&ephemeral=false")
	want(t, "light beat", s.call(t, "PUT", "/instance/beat", instance), 200, beatOK) // recorded: beat-persistent
	want(t, "full beat", s.beat(t, instance, `{"ip":"127.0.0.9","port":9}`), 200, beatOK)
	if got := s.list(t, "serviceName=pe"); len(got.Hosts) != 1 || s.find("pe", "127.0.0.9", 9).Ephemeral {
		t.Errorf("a beat made an ephemeral twin: %+v", got.Hosts)
	}
}

func TestBeatNamesOneService(t *testing.T) {
	s := newTestServer(t)
	const body = `{"ip":"1.1.1.1","port":1,"serviceName":"g2@@be"}`
	s.ok(t, "POST", "/instance", "serviceName=be&groupName=g2&ip=1.1.1.1&port=1")
	want(t, "grouped", s.beat(t, "serviceName=g2@@be", body), 200, beatOK)
	want(t, "with a group", s.beat(t, "serviceName=be&groupName=g2", body), 200, beatOK)
	if got := s.list(t, "serviceName=be"); len(got.Hosts) != 0 {
		t.Errorf("the default group has %+v", got.Hosts)
	}
	want(t, "without a group", s.beat(t, "serviceName=be", body), 200, beatOK)
	if got := s.list(t, "serviceName=be"); len(got.Hosts) != 1 || !got.Hosts[0].Enabled {
		t.Errorf("the parameter does not decide: %+v", got.Hosts)
	}
	if n := s.store.Counts().Services; n != 2 {
		t.Errorf("got %d services, want 2", n)
	}
}

func TestBeatBodyDecidesOverParameters(t *testing.T) {
	const body = `{"ip":"2.2.2.2","port":2}`
	for _, registered := range []string{"1 2", "1", "2"} {
		s := newTestServer(t)
		for port := range strings.SplitSeq(registered, " ") {
			s.ok(t, "POST", "/instance", strings.ReplaceAll("serviceName=d&ip=P.P.P.P&port=P&healthy=false", "P", port))
		}
		want(t, registered, s.beat(t, "serviceName=d&ip=1.1.1.1&port=1", body), 200, beatOK)
		if i := s.find("d", "2.2.2.2", 2); i == nil || !i.Healthy {
			t.Errorf("registered %s: the body's address is %+v, want it healthy", registered, i)
		}
		if i := s.find("d", "1.1.1.1", 1); i != nil && i.Healthy {
			t.Errorf("registered %s: the parameters' address was renewed", registered)
		}
		want(t, "without an address in the body", s.beat(t, "serviceName=d&ip=1.1.1.1&port=1", `{"port":1}`), 400, "Param 'ip' is required.")
	}
}

func TestUnreadableBeats(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=u&ip=1.1.1.1&port=1")
	for _, body := range []string{
		`{`, `x`, `[]`, `"a"`, `1`, `{"ip":"1.1.1.1","port":1}x`,
		`{"ip":{},"port":1}`, `{"ip":"1.1.1.1","port":"x"}`, `{"ip":"1.1.1.1","port":true}`, `{"ip":"1.1.1.1","port":3e9}`,
		`{"ip":"1.1.1.1","port":1,"weight":"x"}`, `{"ip":"1.1.1.1","port":1,"weight":"NaN"}`, `{"ip":"1.1.1.1","port":1,"weight":[]}`,
		`{"ip":"1.1.1.1","port":1,"metadata":"x"}`, `{"ip":"1.1.1.1","port":1,"metadata":[]}`, `{"ip":"1.1.1.1","port":1,"ephemeral":"x"}`,
		`{"ip":"1.1.1.1","port":7,"metadata":{"a":{}}}`,
		strings.Repeat(`[`, 100_000), `{"ip":"1.1.1.1","x":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `,}`,
	} {
		got := s.form(t, "PUT", "/instance/beat", "serviceName=u&beat="+escape(body))
		if got.status != 500 || !strings.Contains(got.body, "beat") && !strings.Contains(got.body, "metadata") {
			t.Errorf("%.60s: got %d %q, want 500 with the parameter's name", body, got.status, got.body)
		}
	}
	for _, body := range []string{
		`{"ip":"1.1.1.1","port":"1"}`, `{"ip":"1.1.1.1","port":1.9}`, `{"port":9,"port":1,"ip":"1.1.1.1"}`, ` {"ip":"1.1.1.1","port":1,"ak":{"x":[1]},"weight":null,"metadata":null,"ephemeral":"True"} `,
	} {
		want(t, body, s.beat(t, "serviceName=u", body), 200, beatOK)
	}
	want(t, "null", s.beat(t, "serviceName=u&ip=1.1.1.1&port=1", "null"), 200, beatOK)
	if got := s.list(t, "serviceName=u").ports(); got != "1" {
		t.Errorf("got ports %s, want 1", got)
	}
}
