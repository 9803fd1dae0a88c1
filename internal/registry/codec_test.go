package registry

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// durableCommands has one of each, with every field set.
func durableCommands() []Command {
	m := Meta{
		At: Instant{Wall: wall0, Lease: 5 * time.Second},
		Cause: Cause{
			Kind: CauseRequest, API: "http-v1", Op: "register", From: netip.MustParseAddr("2001:db8::7"),
			Actor: "alice", Detail: "<&> \u2028",
		},
	}
	key := ServiceKey{"n1", "g", "orders"}
	info := ServiceInfo{
		Metadata: `{"a":"<1>"}`, ProtectThreshold: 0.3, Kind: KindPersistent, Disabled: true, Set: true,
		Selector: Selector{Type: SelectorLabel, Expression: "CONSUMER.label.a=PROVIDER.label.a", Labels: []string{"a"}},
		Legacy:   &LegacyInfo{Owners: []string{"o"}, Token: "t", ModifiedWallMillis: 7},
	}
	return []Command{
		&Register{
			Meta: m, Service: key, Owner: Owner{Kind: OwnerDurable}, Kind: KindPersistent, TakeHealth: true,
			Instance: Instance{
				IP: "::1", Cluster: "c", App: "a", Metadata: `{"k":"\u0000","中":"v"}`, Weight: 0.1, Port: -1, Serial: 3,
				Healthy: true, Enabled: true, Ephemeral: true, Marked: true, HideID: true,
			},
		},
		&Deregister{Meta: m, Service: key, Owner: Owner{Kind: OwnerDurable}, Instance: at("10.0.0.1", 1)},
		&SetOverride{Meta: m, Service: key, Entries: []TargetOverride{
			{Target: at("10.0.0.1", 1), Override: Override{Weight: new(0.0), Enabled: new(false), App: new(""), Metadata: new(Metadata(""))}},
			{Target: at("10.0.0.2", 2)},
		}},
		&DropOverride{Meta: m, Service: key, Target: at("10.0.0.1", 1)},
		&CreateService{Meta: m, Service: key, Info: info, Adopt: true},
		&UpdateService{Meta: m, Service: key, Info: info},
		&DeleteService{Meta: m, Service: key, IfEmpty: true},
		&SetCluster{Meta: m, Service: key, Cluster: Cluster{
			Name: "c", Metadata: `{"a":"1"}`, CheckPort: 1, UseInstancePort: true, DefaultPort: 2, SiteGroup: "s",
			Checker: HealthCheck{Type: CheckMySQL, Path: "/", Headers: "a:b", ExpectedCode: 200, User: "u", Password: "p", Command: "c"},
		}},
		&CreateNamespace{Meta: m, Namespace: Namespace{ID: "n", Name: "N", Description: new("d")}},
		&UpdateNamespace{Meta: m, Namespace: Namespace{ID: "n", Name: "N"}},
		&DeleteNamespace{Meta: m, ID: "n"},
		&SetSwitch{Meta: m, Entry: "check", Value: "false"},
	}
}

func TestCommandRoundTrip(t *testing.T) {
	names := map[string]bool{}
	for _, c := range durableCommands() {
		data, err := EncodeCommand(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeCommand(data)
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s\ncame back as %+v, %v\nwant %+v", data, back, err, c)
		}
		if name := durableName(c); name == "" || names[name] || reflect.TypeOf(durable(name)) != reflect.TypeOf(c) {
			t.Errorf("%T is kept as %q", c, name)
		} else {
			names[name] = true
		}
		Restamp(back, Instant{Wall: 1, Lease: time.Hour})
		if at := metaOf(back).At; at != (Instant{Wall: wall0, Lease: time.Hour}) {
			t.Errorf("%T is restamped %+v", c, at)
		}
	}
}

func TestLocalCommandsAreNotEncoded(t *testing.T) {
	for _, c := range []Command{&SetHealth{}, &CloseClient{}, &Subscribe{}, &Unsubscribe{}} {
		if data, err := EncodeCommand(c); err == nil {
			t.Errorf("%T became %s", c, data)
		}
		Restamp(c, Instant{}) // must do no harm
	}
}

func TestDecodeCommandRefuses(t *testing.T) {
	for _, text := range []string{
		``, `zzz`, `{}`, `[]`, `{"op":"fly","body":{}}`, `{"op":"register"}`, `{"op":"register","body":[]}`,
		`{"op":"register","body":{"instance":{"metadata":{"a":1}}}}`, `{"op":"set-switch","body":{"entry":1}}`,
	} {
		if c, err := DecodeCommand([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "decode command") {
			t.Errorf("%q: got %+v, %v", text, c, err)
		}
	}
}

// FuzzDecodeCommand applies whatever can be decoded, and encodes it again.
func FuzzDecodeCommand(f *testing.F) {
	for _, c := range durableCommands() {
		data, err := EncodeCommand(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCommand(data)
		if err != nil {
			return
		}
		again, err := EncodeCommand(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeCommand(again)
		if err != nil || marshal(t, back) != marshal(t, c) {
			t.Errorf("%s came back as %s, %v", marshal(t, c), marshal(t, back), err)
		}
		w := busyWorld(t)
		w.OpenClient("")
		for range 2 {
			if _, err := w.Apply(c); err != nil {
				var refusal *Error
				if !errors.As(err, &refusal) {
					t.Errorf("%v is no refusal", err)
				}
			}
			checkStore(t, w.Store)
		}
		w.pass(time.Minute)
		checkStore(t, w.Store)
	})
}
