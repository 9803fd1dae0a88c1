package modern

import (
	"math"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestPageOf(t *testing.T) {
	const most = math.MaxInt32
	for _, tt := range []struct{ number, size, length, from, to int }{
		{1, 10, 25, 0, 10},
		{3, 10, 25, 20, 25},
		{4, 10, 25, 25, 25},
		{0, 10, 25, 0, 10},
		{-7, 10, 25, 0, 10},
		{1, 0, 25, 0, 0},
		{2, -1, 25, 0, 0},
		{1, 10, 0, 0, 0},
		{most, most, 25, 25, 25},
		{1, most, 25, 0, 25},
		{math.MinInt32, math.MinInt32, 25, 0, 0},
	} {
		if from, to := PageOf(tt.number, tt.size, tt.length); from != tt.from || to != tt.to {
			t.Errorf("page %d of %d in %d: got %d to %d, want %d to %d", tt.number, tt.size, tt.length, from, to, tt.from, tt.to)
		}
	}
}

func TestEphemeral(t *testing.T) {
	persistent, ephemeral := []*registry.Instance{{}}, []*registry.Instance{{Ephemeral: true}}
	for _, tt := range []struct {
		kind registry.Kind
		list []*registry.Instance
		want bool
	}{
		{registry.KindEphemeral, persistent, true},
		{registry.KindPersistent, ephemeral, false},
		{registry.KindAny, nil, true},
		{registry.KindAny, persistent, false},
		{registry.KindAny, ephemeral, true},
	} {
		view := &registry.View{Info: &registry.ServiceInfo{Kind: tt.kind}, Instances: tt.list}
		if got := Ephemeral(view); got != tt.want {
			t.Errorf("%v with %d: got %v", tt.kind, len(tt.list), got)
		}
	}
}

func TestUsedClusters(t *testing.T) {
	view := &registry.View{Clusters: []*registry.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Instances: []*registry.Instance{
		{IP: "1", Cluster: "c"}, {IP: "2", Cluster: "a"}, {IP: "3", Cluster: "c"},
	}}
	var got []string
	for _, c := range UsedClusters(view) {
		text := c.Name + ":"
		for _, i := range c.Instances {
			text += i.IP
		}
		got = append(got, text)
	}
	if all := strings.Join(got, " "); all != "a:2 c:13" {
		t.Errorf("got %s", all)
	}
}

func TestNewUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	a, b := newUUID(), newUUID()
	if !form.MatchString(a) || !form.MatchString(b) || a == b {
		t.Errorf("got %s, %s", a, b)
	}
	if err := checkNamespaceID(a); err != nil {
		t.Error(err)
	}
}

func TestNamespaceTexts(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"an ID", checkNamespaceID("a_B-9"), true},
		{"no ID", checkNamespaceID(""), true},
		{"the longest ID", checkNamespaceID(strings.Repeat("a", maxNamespaceID)), true},
		{"a longer ID", checkNamespaceID(strings.Repeat("a", maxNamespaceID+1)), false},
		{"an ID with a dot", checkNamespaceID("a.b"), false},
		{"a name", checkNamespaceName("Team Ä"), true},
		{"no name", checkNamespaceName(""), false},
		{"a name with a sign", checkNamespaceName("a#b"), false},
		{"a long name", checkNamespaceName(strings.Repeat("ä", maxNamespaceName+1)), false},
		{"the longest text", checkLabel("d", strings.Repeat("ä", maxNamespaceDesc), maxNamespaceDesc), true},
		{"a longer text", checkLabel("d", strings.Repeat("a", maxNamespaceDesc+1), maxNamespaceDesc), false},
		{"bytes", checkLabel("d", "\xff", maxNamespaceDesc), false},
		{"a control character", checkLabel("d", "a\x00", maxNamespaceDesc), false},
	} {
		if (tt.err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, tt.err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for f, want := range map[float64]string{1: "1.0", 0.1: "0.1", 10000: "10000.0", 0: "0.0", -2.5: "-2.5"} {
		if got := string(AppendDouble(nil, f)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(AppendFloat(nil, 0.1)); got != "0.1" {
		t.Errorf("got %s", got)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := finite(f); got != 0 {
			t.Errorf("got %v of %v", got, f)
		}
	}
}

func TestAppendText(t *testing.T) {
	b := AppendText([]byte("{"), "a", `"`)
	b = append(AppendText(AppendText(b, "b", "<ü>"), "c", "\xff"), '}')
	if want := `{"a":"\"","b":"<ü>","c":"` + "\ufffd" + `"}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if b, err := EncodeJSON([]byte("x:"), map[string]string{"a": "<b>&"}); err != nil || string(b) != `x:{"a":"<b>&"}` {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := EncodeJSON(nil, math.NaN()); err == nil {
		t.Error("encoded NaN")
	}
}

func TestAddressIs(t *testing.T) {
	six, port := "FE80:0::1", int32(80)
	for _, tt := range []struct {
		name string
		a    Address
		want bool
	}{
		{"anybody", Address{}, true},
		{"spelled otherwise", Address{&six, &port}, true},
		{"by port", Address{nil, &port}, true},
		{"another port", Address{&six, new(int32(81))}, false},
		{"another address", Address{new("fe80::2"), nil}, false},
	} {
		if got := tt.a.Is("fe80::1", 80); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestSubscriberAddresses(t *testing.T) {
	addr := netip.MustParseAddrPort("[fe80::1]:54321")
	packets := &registry.Subscriber{SubscriberKey: registry.SubscriberKey{Addr: addr}}
	stream := &registry.Subscriber{SubscriberKey: registry.SubscriberKey{Addr: addr, Client: "c"}}
	if ip, port := SubscriberAddress(packets); ip != "fe80::1" || port != 54321 || SubscriberText(packets) != "[fe80::1]:54321" {
		t.Errorf("got %s, %d, %s", ip, port, SubscriberText(packets))
	}
	if ip, port := SubscriberAddress(stream); ip != "fe80::1" || port != 0 || SubscriberText(stream) != "fe80::1" {
		t.Errorf("got %s, %d, %s", ip, port, SubscriberText(stream))
	}
}
