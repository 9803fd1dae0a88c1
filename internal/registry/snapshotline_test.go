package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"testing"
)

var plainInstance = Instance{
	IP: "10.0.0.7", Cluster: "DEFAULT", App: "unknown", Metadata: `{"a":"1","b":""}`, Weight: 0.5, Port: 8080,
	Healthy: true, Enabled: true, Ephemeral: true,
}

func lineOf(t testing.TB, key ServiceKey, h *holding) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeSnapshot(&b, func(l *lineWriter) { l.registration(key, h) }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func jsonLine(t testing.TB, e *entry) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A common instance has the line that encoding/json writes, and is read back from
// it without encoding/json.
func TestInstanceLine(t *testing.T) {
	bare := plainInstance
	bare.App, bare.Metadata = "", ""
	for name, h := range map[string]*holding{
		"plain":      {base: &plainInstance, healthy: true},
		"bare":       {base: &bare, kind: OwnerDurable},
		"connection": {base: &plainInstance, kind: OwnerConnection, client: &client{id: "1_10.0.0.1_9"}},
	} {
		want := entry{Instance: &instanceEntry{ServiceKey: orders(), Owner: h.owner(), Healthy: h.healthy, Instance: h.base}}
		line := lineOf(t, orders(), h)
		if line != jsonLine(t, &want) {
			t.Errorf("%s: got line\n%swant\n%s", name, line, jsonLine(t, &want))
		}
		got, ok := newEntryReader().instance(line)
		if !ok || !reflect.DeepEqual(got, want.Instance) {
			t.Errorf("%s: got %+v back, %t, want %+v", name, got, ok, want.Instance)
		}
	}
}

func newEntryReader() *entryReader { return &entryReader{texts: interner{seed: maphash.MakeSeed()}} }

// Services that are set up alike share their settings; what looks alike is not
// taken for it.
func TestServiceLines(t *testing.T) {
	info := func(m Metadata) *ServiceInfo { i := blankInfo(KindAny); i.Metadata = m; return i }
	clusters := []*Cluster{NewCluster(DefaultCluster)}
	var want []*serviceEntry
	for n, e := range []*serviceEntry{
		{Info: blankInfo(KindAny), Clusters: clusters, Revision: 1},
		{Info: blankInfo(KindAny), Clusters: clusters, Revision: 2, Kept: true},
		{Info: info(`{"a":"1","revision":"7"}`), Clusters: clusters, Revision: 3},
		{Info: info(`{"a":"1","revision":"8"}`), Clusters: clusters, Revision: 4},
		{Info: info(`{"a":"1","revision":"8"}`), Clusters: clusters, Revision: 5},
		{Info: info(`{"a":"1","revision":"8"}`), Revision: 6},
	} {
		e.ServiceKey = named(fmt.Sprint("s", n))
		want = append(want, e)
	}
	want[5].Name = `escaped "`
	read := newEntryReader()
	var got []*serviceEntry
	for _, e := range want {
		line, err := read.entry(jsonLine(t, &entry{Service: e}))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line.Service)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s back, want %s", marshal(t, got), marshal(t, want))
	}
	for n, shared := range []bool{false, true, false, false, true, false} {
		if n > 0 && (got[n].Info == got[n-1].Info) != shared {
			t.Errorf("service %d shares its settings with the one before: %t, want %t", n, !shared, shared)
		}
	}
}

// Whatever an instance may have is in its line, also a field that comes later.
func TestEveryFieldIsKept(t *testing.T) {
	kind := reflect.TypeFor[Instance]()
	for n := range kind.NumField() {
		i := plainInstance
		field := reflect.ValueOf(&i).Elem().Field(n)
		switch field.Kind() {
		case reflect.String:
			field.SetString(`{"x":"\"<&> é"}`)
		case reflect.Float64:
			field.SetFloat(1e-7)
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Int32:
			field.SetInt(-9)
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.Pointer:
			field.Set(reflect.ValueOf(&Rare{ID: "own"}))
		default:
			t.Fatalf("%s: set a value of this kind", kind.Field(n).Name)
		}
		line := lineOf(t, orders(), &holding{base: &i})
		snap, err := ReadSnapshot(strings.NewReader(line))
		if err != nil || len(snap.entries) != 1 {
			t.Fatalf("%s: %v from %s", kind.Field(n).Name, err, line)
		}
		if got := *snap.entries[0].Instance.Instance; !reflect.DeepEqual(got, i) {
			t.Errorf("%s: got %+v back, want %+v", kind.Field(n).Name, got, i)
		}
	}
}

// Where both the short way and encoding/json read a line, they read the same.
func FuzzSnapshotLine(f *testing.F) {
	line := lineOf(f, orders(), &holding{base: &plainInstance})
	service := jsonLine(f, &entry{Service: &serviceEntry{ServiceKey: orders(), Info: blankInfo(KindAny), Revision: 9}})
	for _, seed := range []string{
		line, strings.TrimSpace(line), strings.Replace(line, "10.0.0.7", `\u0041`, 1), strings.Replace(line, "0.5", "5e-1", 1),
		strings.Replace(line, "8080", "4294967296", 1), strings.Replace(line, `"b":""`, `"a":"2"`, 1),
		strings.Replace(line, `,"app"`, ` , "app"`, 1), strings.Replace(line, "true", "null", 1), line + line, "{}\n",
		service, strings.Replace(service, "}}\n", `,"kept":true}}`+"\n", 1), strings.Replace(service, "9", "9,\"kept\":1", 1),
		strings.Replace(service, `,"info"`, `},"service":null,"x":{"info"`, 1),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		read := newEntryReader()
		for range 2 { // the second time a service is like the one before
			got, err := read.entry(line)
			var want entry
			if err != nil || json.Unmarshal([]byte(line), &want) != nil {
				return
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q\ngot  %s\nwant %s", line, marshal(t, got), marshal(t, want))
			}
		}
	})
}
