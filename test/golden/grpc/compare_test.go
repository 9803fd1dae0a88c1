package grpc

import (
	"encoding/json"
	"strings"
	"testing"
)

func value(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestComparison(t *testing.T) {
	for _, tt := range []struct {
		name, want, got string
		differs         string // a part of the difference; empty: none
	}{
		{"key order", `{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1.0}`, ""},
		{"missing key", `{"a":1,"b":2}`, `{"a":1}`, `missing key "b"`},
		{"extra key", `{"a":1}`, `{"a":1,"b":null}`, `extra key "b"`},
		{"kinds", `{"a":1}`, `{"a":"1"}`, `.a: got "1", want 1`},
		{"values", `{"a":{"b":[1,2]}}`, `{"a":{"b":[1,3]}}`, ".a.b[1]: got 3, want 2"},
		{"length", `[1]`, `[1,1]`, "2 items, want 1"},
		{"hosts have no order", `{"hosts":[{"ip":"b"},{"ip":"a"}]}`, `{"hosts":[{"ip":"a"},{"ip":"b"}]}`, ""},
		{"others do", `{"list":["b","a"]}`, `{"list":["a","b"]}`, ".list[0]"},
		{"volatile", `{"lastRefTime":1,"requestId":"{rid1}"}`, `{"lastRefTime":9,"requestId":"17"}`, ""},
		{"volatile kind", `{"lastRefTime":1}`, `{"lastRefTime":"1"}`, "lastRefTime"},
		{"order beside volatile", `{"hosts":[{"ip":"a","lastRefTime":2},{"ip":"b","lastRefTime":1}]}`, `{"hosts":[{"ip":"b","lastRefTime":3},{"ip":"a","lastRefTime":1}]}`, ""},
		{"connection ID", `{"m":"Client [{connection-id}] x"}`, `{"m":"Client [1_10.0.0.1_5] x"}`, ""},
		{"not a connection ID", `{"m":"Client [{connection-id}] x"}`, `{"m":"Client [1 2] x"}`, ".m"},
		{"runtime text", `{"errorCode":500,"message":"Cannot invoke \"x\""}`, `{"errorCode":500,"message":"better"}`, ""},
		{"no text", `{"errorCode":500}`, `{"errorCode":500,"message":"better"}`, ""},
		{"no text of another code", `{"errorCode":400}`, `{"errorCode":400,"message":"better"}`, "extra key"},
		{"runtime text behind ours", `{"m":"Param check invalid:Cannot invoke \"x\""}`, `{"m":"Param check invalid:better"}`, ""},
	} {
		c := newComparison([]string{"lastRefTime"})
		got := strings.Join(c.differences(value(t, tt.want), value(t, tt.got), "", ""), "; ")
		if tt.differs == "" && got != "" || !strings.Contains(got, tt.differs) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.differs)
		}
	}
}

func TestRepeatsAreFound(t *testing.T) {
	push := func(id, ip string) *Message {
		return &Message{Conn: "a", Dir: "server", Stream: "bi", Type: "NotifySubscriberRequest", Body: map[string]any{
			"requestId": id, "serviceInfo": map[string]any{"name": "s", "hosts": []any{map[string]any{"ip": ip}}},
		}}
	}
	ack := func(id string) *Message {
		return &Message{Conn: "a", Dir: "client", Stream: "bi", Body: map[string]any{"requestId": id, "resultCode": json.Number("200")}}
	}
	r := &replay{compare: newComparison(nil), script: &Transcript{Messages: []*Message{
		push("1", "x"), ack("1"), push("2", "x"), push("3", "x"), push("4", "x"), push("5", "y"),
	}}}
	got := r.findRepeats()
	if len(got) != 2 || got[3] != (repeat{"2", true}) || got[4] != (repeat{"3", false}) {
		t.Errorf("got %v", got)
	}
}
