package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// registration is an event of the usual size: an instance with three entries of
// metadata, registered over HTTP.
func registration(n int) *registry.Event {
	e := &registry.Event{
		Kind:    registry.InstanceRegistered,
		At:      registry.Instant{Wall: 1764556800000 + int64(n)},
		Service: registry.ServiceKey{Namespace: "public", Group: "DEFAULT_GROUP", Name: fmt.Sprintf("orders-%d", n/10)},
		Cause: registry.Cause{
			Kind: registry.CauseRequest, API: "http-v1", Op: "register",
			From: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}),
		},
		Instance: &registry.Instance{
			IP: fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), Port: 8080, Cluster: "DEFAULT",
			Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
			Metadata: registry.NewMetadata(map[string]string{
				"preserved.register.source": "SPRING_CLOUD", "version": "1.4.2", "zone": "eu-west-1a",
			}),
		},
		Revision: 1764556800000 + int64(n),
	}
	e.Base = e.Instance
	return e
}

func removal(n int) *registry.Event {
	e := registration(n)
	e.Kind, e.Base = registry.InstanceRemoved, nil
	e.Cause = registry.Cause{Kind: registry.CauseBeatLost, Detail: "30s without a beat"}
	return e
}

func TestRecordLine(t *testing.T) {
	got := string(appendRecord(nil, 17, registration(7), 0))
	want := `{"q":17,"t":1764556800007,"k":"registered","ns":"public","g":"DEFAULT_GROUP","s":"orders-0",` +
		`"c":"DEFAULT","ip":"10.0.0.7","p":8080,"e":1,"h":1,"w":1,"en":1,` +
		`"md":{"preserved.register.source":"SPRING_CLOUD","version":"1.4.2","zone":"eu-west-1a"},"b":1,` +
		`"o":"http","rv":1764556800007,"ck":"request","a":"http-v1","op":"register","f":"10.0.0.7",` +
		`"z":"` + sumOf(got) + `"}` + "\n"
	if got != want {
		t.Errorf("registration:\n got %s\nwant %s", got, want)
	}
	got = string(appendRecord(nil, 18, removal(7), 0))
	want = `{"q":18,"t":1764556800007,"k":"removed","ns":"public","g":"DEFAULT_GROUP","s":"orders-0",` +
		`"c":"DEFAULT","ip":"10.0.0.7","p":8080,"e":1,"h":1,"o":"http","rv":1764556800007,` +
		`"ck":"beat timeout","cd":"30s without a beat","z":"` + sumOf(got) + `"}` + "\n"
	if got != want {
		t.Errorf("removal:\n got %s\nwant %s", got, want)
	}
}

func sumOf(line string) string {
	_, sum, _ := strings.Cut(line, `"z":"`)
	return strings.TrimSuffix(sum, "\"}\n")
}

func TestRecordRoundTrip(t *testing.T) {
	full := registry.Event{
		Kind:    registry.OverrideSet,
		At:      registry.Instant{Wall: 1764556800000},
		Service: registry.ServiceKey{Namespace: "ns-\"1\"", Group: "g\\1", Name: "服务\n"},
		Cause: registry.Cause{
			Kind: registry.CauseRequest, API: "v3", Op: "update",
			From: netip.MustParseAddr("fe80::1%eth\"0"), Actor: "alice", Detail: "weight=0.25",
		},
		Instance: &registry.Instance{
			IP: "2001:db8::1", Port: -1, Cluster: "c1", App: "app", Weight: 0.25, Serial: 1 << 30,
			Healthy: true, Enabled: true, Ephemeral: false, Marked: true, HideID: true,
			Rare: &registry.Rare{ID: "my\"id"}, Unclustered: registry.BlankCluster,
			Metadata: registry.NewMetadata(map[string]string{"a": "1", "q\"": "\u2028 {x}:,"}),
		},
		Base: &registry.Instance{
			IP: "2001:db8::1", Port: -1, Cluster: "c1", Weight: 3, Serial: 1 << 30,
			Healthy: true, Ephemeral: false, Marked: true, HideID: true,
			Rare: &registry.Rare{ID: "my\"id"}, Unclustered: registry.BlankCluster,
			Metadata: registry.NewMetadata(map[string]string{"b": "2"}),
		},
		Owner:    registry.Owner{Kind: registry.OwnerConnection, Client: "1764556800000_10.0.0.7_52044"},
		Revision: math.MaxInt64,
		Detail:   "a detail",
	}
	tests := []struct {
		name string
		seq  uint64
		e    registry.Event
	}{
		{"empty", 1, registry.Event{}},
		{"registration", 2, *registration(3)},
		{"everything", math.MaxUint64, full},
		{"before the epoch", 3, registry.Event{At: registry.Instant{Wall: -1}}},
		{"switch", 4, registry.Event{Kind: registry.SwitchSet, Detail: "pushEnabled=false"}},
		{"bare registration below an override", 7, registry.Event{
			Instance: &registry.Instance{Weight: 2, Enabled: true, App: "a", Metadata: `{"a":"1"}`}, Base: &registry.Instance{},
		}},
		{"durable owner", 5, registry.Event{Instance: &registry.Instance{IP: "h.example"}, Owner: registry.Owner{Kind: registry.OwnerDurable}}},
		{"acknowledged push", 8, registry.Event{
			Kind: registry.PushAcknowledged, Took: 1234 * time.Microsecond, Revision: 5,
			Subscriber: &registry.Subscriber{Protocol: registry.ProtocolUDP, SubscriberKey: registry.SubscriberKey{
				Addr: netip.MustParseAddrPort("10.0.0.7:52044"), Agent: "Nacos-Java-Client:v1.4.2", Clusters: "a,b",
			}},
		}},
		{"failed push", 9, registry.Event{
			Kind: registry.PushFailed, Took: -time.Microsecond, Detail: "lost",
			Subscriber: &registry.Subscriber{SubscriberKey: registry.SubscriberKey{
				Addr: netip.MustParseAddrPort("[fe80::1%eth\"0]:1"), Client: "c-1",
			}},
		}},
		{"push to nobody", 10, registry.Event{Subscriber: &registry.Subscriber{}}},
		{"huge weight", 6, registry.Event{Instance: &registry.Instance{Weight: 1e300}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := appendRecord(nil, tt.seq, &tt.e, 9)
			if !json.Valid(line) || bytes.Count(line, []byte{'\n'}) != 1 {
				t.Fatalf("not one line of JSON: %q", line)
			}
			body := bytes.TrimSuffix(line, []byte{'\n'})
			if !intact(body) {
				t.Fatalf("checksum of %s does not match", body)
			}
			got, err := parseRecord(body)
			if err != nil {
				t.Fatal(err)
			}
			if want := (Record{Seq: tt.seq, Event: tt.e, Count: 9}); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v %+v\nwant %+v %+v", got, got.Event.Instance, want, want.Event.Instance)
			}
		})
	}
}

func TestRecordsOfHealthAndRemovalCarryTheKeyOnly(t *testing.T) {
	for _, kind := range []registry.EventKind{registry.InstanceRemoved, registry.InstanceHealthy, registry.InstanceUnhealthy} {
		e := registration(1)
		e.Kind = kind
		rec, err := parseRecord(bytes.TrimSpace(appendRecord(nil, 1, e, 0)))
		if err != nil {
			t.Fatal(err)
		}
		want := registry.Instance{IP: "10.0.0.1", Port: 8080, Cluster: "DEFAULT", Ephemeral: true, Healthy: true}
		if *rec.Event.Instance != want {
			t.Errorf("%s: got %+v, want %+v", kind, *rec.Event.Instance, want)
		}
	}
}

func TestParseRecordTolerates(t *testing.T) {
	tests := []struct {
		name, line string
		want       Record
	}{
		{
			"unknown members", `{"q":1,"t":2,"k":"removed","new":{"deep":[1,{"ip":"x"}]},"s":"orders","z":"00000000"}`,
			Record{Seq: 1, Event: registry.Event{Kind: "removed", At: registry.Instant{Wall: 2}, Service: registry.ServiceKey{Name: "orders"}}},
		},
		{
			"wrong types", `{"q":1,"t":2,"k":"removed","s":5,"e":1,"p":1e300,"sn":"x","ip":{},"md":[1],"f":"nowhere","rv":"x"}`,
			Record{Seq: 1, Event: registry.Event{Kind: "removed", At: registry.Instant{Wall: 2}, Instance: &registry.Instance{Ephemeral: true}}},
		},
		{
			"metadata in another spelling", `{"q":1,"t":2,"k":"registered","e":0,"md":{ "b":"2", "a":"1"},"o":"http"}`,
			Record{Seq: 1, Event: registry.Event{
				Kind: "registered", At: registry.Instant{Wall: 2},
				Instance: &registry.Instance{Metadata: `{"a":"1","b":"2"}`},
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseRecord([]byte(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for _, line := range []string{
		``, `{}`, `[]`, `null`, `{"q":1}`, `{"q":1,"t":2}`, `{"t":2,"q":1,"k":"x"}`, `{"q":-1,"t":2,"k":"x"}`,
		`{"q":1,"t":"2","k":"x"}`, `{"q":1,"t":2,"k":"x"`, `{"q":1,"t":2,"k":"x}`, `{"q":99999999999999999999,"t":2,"k":"x"}`,
		`{"rollcall":"history","format":1,"first":1}`, "\x00\x00\x00\x00",
	} {
		if rec, err := parseRecord([]byte(line)); err == nil {
			t.Errorf("%q: got %+v, want an error", line, rec)
		}
	}
}

// Any single damaged byte is noticed.
func TestIntact(t *testing.T) {
	line := bytes.TrimSuffix(appendRecord(nil, 1, registration(1), 0), []byte{'\n'})
	if !intact(line) {
		t.Fatal("an untouched line does not verify")
	}
	for i := range line {
		for _, flip := range []byte{1, 0x20, 0x80} {
			line[i] ^= flip
			// Hex digits are accepted in either case: no damage to what is said.
			if c := line[i] ^ flip; intact(line) && !(i >= len(line)-10 && c >= 'a' && c <= 'f' && flip == 0x20) {
				t.Errorf("byte %d changed by %#x is not noticed", i, flip)
			}
			line[i] ^= flip
		}
		if intact(line[:i]) {
			t.Errorf("cut to %d bytes is not noticed", i)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(appendRecord(nil, 1, registration(1), 0))
	f.Add(appendRecord(nil, 2, removal(1), 0))
	f.Add(lostPiece(3, 9).data)
	f.Add([]byte(`{"q":1,"t":2,"k":"push failed","su":"[::1%z\"]:80","sp":"udp","sa":"a","tk":9223372036854775807,"sl":"x"}`))
	f.Add([]byte(`{"q":1,"t":2,"k":"a\"b","e":1,"md":{"a":"\u0041"},"w":-0,"f":"::1%z","new":[{}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		intact(line)
		rec, err := parseRecord(line)
		if err != nil {
			return
		}
		again := bytes.TrimSuffix(appendRecord(nil, rec.Seq, &rec.Event, rec.Count), []byte{'\n'})
		if !intact(again) || bytes.IndexByte(again, '\n') >= 0 {
			t.Fatalf("encoded badly: %q", again)
		}
		once, err := parseRecord(again)
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		if twice := appendRecord(nil, once.Seq, &once.Event, once.Count); !bytes.Equal(bytes.TrimSuffix(twice, []byte{'\n'}), again) {
			t.Fatalf("unstable:\n%q\n%q", again, twice)
		}
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	for _, bb := range []struct {
		name string
		e    *registry.Event
	}{{"registration", registration(70_000)}, {"removal", removal(70_000)}} {
		b.Run(bb.name, func(b *testing.B) {
			buf := make([]byte, 0, 1<<10)
			b.ReportAllocs()
			for b.Loop() {
				buf = appendRecord(buf[:0], 1_000_000, bb.e, 0)
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

func BenchmarkParseRecord(b *testing.B) {
	line := bytes.TrimSuffix(appendRecord(nil, 1_000_000, registration(70_000), 0), []byte{'\n'})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseRecord(line); err != nil {
			b.Fatal(err)
		}
	}
}
