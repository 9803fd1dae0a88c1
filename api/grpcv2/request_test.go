package grpcv2

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func given(s string) Optional { return Optional{Value: s, Given: true} }

// instanceOf is an instance with the defaults and then change.
func instanceOf(change func(*Instance)) *Instance {
	i := &Instance{Weight: 1, Healthy: true, Enabled: true}
	change(i)
	return i
}

func TestDecodeInstance(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       InstanceRequest
	}{
		{"empty", `{}`, InstanceRequest{}},
		{
			"java", // as nacos-client 2.5.1 sends it
			`{"headers":{},"namespace":"public","serviceName":"s","groupName":"g","module":"naming","type":"registerInstance",
			"instance":{"instanceId":null,"ip":"10.0.0.1","port":8080,"weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,
			"clusterName":null,"serviceName":"g@@s","metadata":{"a":"1"},"instanceHeartBeatInterval":5000,"instanceIdGenerator":"simple"},"requestId":null}`,
			InstanceRequest{
				Service: Service{Namespace: "public", HasNamespace: true, Name: given("s"), Group: given("g")}, Type: given(Register),
				Instance: instanceOf(func(i *Instance) { i.IP, i.Port, i.Service, i.Metadata = "10.0.0.1", 8080, "g@@s", []byte(`{"a":"1"}`) }),
			},
		},
		{
			"go deregister", // as nacos-sdk-go 2.3.5 sends it
			`{"namespace":"public","serviceName":"s","groupName":"g","requestId":"","module":"naming","type":"deregisterInstance",
			"instance":{"instanceId":"","ip":"10.0.0.1","port":8080,"weight":0,"healthy":false,"enabled":false,"ephemeral":true,"clusterName":"",
			"serviceName":"","metadata":null,"instanceHeartBeatInterval":0}}`,
			InstanceRequest{
				Service: Service{Namespace: "public", HasNamespace: true, Name: given("s"), Group: given("g")}, Type: given(Deregister),
				Instance: &Instance{IP: "10.0.0.1", Port: 8080, Cluster: given("")},
			},
		},
		{"nulls", `{"namespace":null,"serviceName":null,"type":null,"instance":null}`, InstanceRequest{Service: Service{HasNamespace: true}}},
		{
			"nulls within", `{"instance":{"ip":null,"port":null,"weight":null,"healthy":null,"enabled":null,"metadata":null}}`,
			InstanceRequest{Instance: instanceOf(func(*Instance) {})},
		},
		{
			"scalars of other kinds", `{"serviceName":12,"groupName":true,"instance":{"port":"80","weight":"2.5","healthy":"false","enabled":0,"ip":1.50}}`,
			InstanceRequest{
				Service:  Service{Name: given("12"), Group: given("true")},
				Instance: &Instance{IP: "1.50", Port: 80, Weight: 2.5},
			},
		},
		{"empty texts for numbers", `{"instance":{"port":"","weight":"","healthy":""}}`, InstanceRequest{Instance: &Instance{Weight: 1, Enabled: true}}},
		{"a fraction is dropped", `{"instance":{"port":80.9}}`, InstanceRequest{Instance: instanceOf(func(i *Instance) { i.Port = 80 })}},
		{
			"escapes", `{"serviceName":"a\u0062\n\"\\\/\ud83d\ude00\ud83d!\b\f\r\t"}`,
			InstanceRequest{Service: Service{Name: given("ab\n\"\\/\U0001F600�!\b\f\r\t")}},
		},
		{"twice", `{"serviceName":"a","serviceName":"b"}`, InstanceRequest{Service: Service{Name: given("b")}}},
		{"unknown members", `{"x":{"y":[1,{"z":null}],"e":1e+5},"serviceName":"a"}`, InstanceRequest{Service: Service{Name: given("a")}}},
		{"what follows", ` {"serviceName":"a"} ]junk`, InstanceRequest{Service: Service{Name: given("a")}}},
		{
			"metadata of scalars", `{"instance":{"metadata":{"a":1,"b":null,"c":true}}}`,
			InstanceRequest{Instance: instanceOf(func(i *Instance) { i.Metadata = []byte(`{"a":1,"b":null,"c":true}`) })},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeInstance([]byte(tt.body))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v %+v, %v\nwant %+v %+v", got, got.Instance, err, tt.want, tt.want.Instance)
			}
		})
	}
}

func TestDecodeFaults(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "blank": "  ", "open": "{bad", "array": "[]", "string": `"x"`, "number": "1",
		"instance of the wrong shape": `{"instance":"x"}`, "port of letters": `{"instance":{"port":"abc"}}`,
		"port of 33 bits": `{"instance":{"port":4294967296}}`, "port is a boolean": `{"instance":{"port":true}}`,
		"weight is NaN": `{"instance":{"weight":"NaN"}}`, "weight is infinite": `{"instance":{"weight":1e999}}`,
		"healthy is a word": `{"instance":{"healthy":"maybe"}}`, "healthy is an object": `{"instance":{"healthy":{}}}`,
		"name is an object": `{"serviceName":{}}`, "name is a list": `{"serviceName":["a"]}`,
		"metadata is a text": `{"instance":{"metadata":"a=1"}}`, "metadata is deep": `{"instance":{"metadata":{"a":{}}}}`,
		"no colon": `{"a" 1}`, "no comma": `{"a":1 "b":2}`, "comma at the end": `{"a":1,}`, "comma first": `{,"a":1}`,
		"name without quotes": `{a:1}`, "no end": `{"a":1`, "text without end": `{"a":"b`, "escape without end": `{"a":"\`,
		"bad escape": `{"a":"\x"}`, "bad code point": `{"a":"\u00g0"}`, "short code point": `{"a":"\u00"`,
		"control character": "{\"a\":\"\x01\"}", "control character behind an escape": "{\"a\":\"\\n\x01\"}",
		"not UTF-8": "{\"a\":\"\xff\"}", "not UTF-8 behind an escape": "{\"a\":\"\\n\xff\"}",
		"leading zero": `{"a":01}`, "bare minus": `{"a":-}`, "bare point": `{"a":1.}`, "bare exponent": `{"a":1e}`,
		"bad word": `{"a":nul}`, "word and more": `{"a":trues}`,
		"too deep": strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
	} {
		if q, err := DecodeInstance([]byte(body)); err == nil || errors.Is(err, ErrNull) {
			t.Errorf("%s: %q gave %+v, %v", name, body, q, err)
		}
	}
	if _, err := DecodeInstance([]byte(" null ")); !errors.Is(err, ErrNull) {
		t.Errorf("null: %v", err)
	}
	if err := DecodeEmpty([]byte(`{"headers":{},"module":"internal"}`)); err != nil {
		t.Error(err)
	}
	if err := DecodeEmpty([]byte(`{bad`)); err == nil {
		t.Error("a health check may be broken JSON")
	}
}

func TestDecodeBatch(t *testing.T) {
	q, err := DecodeBatch([]byte(`{"type":"batchRegisterInstance","instances":[{"ip":"a"},null,{"port":2}]}`))
	if err != nil || !q.Given || len(q.Instances) != 3 || q.Instances[0].IP != "a" || q.Instances[1] != nil || q.Instances[2].Port != 2 {
		t.Errorf("got %+v, %v", q, err)
	}
	for body, given := range map[string]bool{`{}`: false, `{"instances":null}`: false, `{"instances":[]}`: true} {
		if q, err := DecodeBatch([]byte(body)); err != nil || q.Given != given || len(q.Instances) > 0 {
			t.Errorf("%s: got %+v, %v", body, q, err)
		}
	}
	for _, body := range []string{`{"instances":{}}`, `{"instances":[1]}`, `{"instances":[` + strings.Repeat("{},", maxBatch) + `{}]}`} {
		if _, err := DecodeBatch([]byte(body)); err == nil {
			t.Errorf("%.30s: no error", body)
		}
	}
}

func TestDecodeOthers(t *testing.T) {
	query, err := DecodeQuery([]byte(`{"cluster":"a,b","healthOnly":true,"udpPort":0}`)) // Python's name
	if err != nil || query.Clusters != given("a,b") || !query.HealthyOnly {
		t.Errorf("query: %+v, %v", query, err)
	}
	if query, err = DecodeQuery([]byte(`{"cluster":null,"healthyOnly":true}`)); err != nil || query.Clusters.Given || !query.HealthyOnly {
		t.Errorf("query: %+v, %v", query, err)
	}
	sub, err := DecodeSubscribe([]byte(`{"subscribe":true,"clusters":"","namespace":""}`))
	if err != nil || !sub.Subscribe || sub.Clusters != given("") || !sub.HasNamespace {
		t.Errorf("subscribe: %+v, %v", sub, err)
	}
	if _, err := DecodeSubscribe([]byte(`{"subscribe":"maybe"}`)); err == nil {
		t.Error("subscribe: no error")
	}
	list, err := DecodeList([]byte(`{"pageNo":2,"pageSize":2147483647,"selector":{"type":"label"}}`))
	if err != nil || list.PageNo != 2 || list.PageSize != 2147483647 {
		t.Errorf("list: %+v, %v", list, err)
	}
	watch, err := DecodeFuzzyWatch([]byte(`{"initializing":true,"namespace":"n","groupKeyPattern":"n>>g>>*","receivedGroupKeys":["a",null,"b"],"watchType":"WATCH"}`))
	want := FuzzyWatchRequest{Namespace: "n", Pattern: "n>>g>>*", WatchType: Watch, Initializing: true, Received: []string{"a", "b"}}
	if err != nil || !reflect.DeepEqual(watch, want) {
		t.Errorf("fuzzy watch: %+v, %v", watch, err)
	}
	if _, err := DecodeFuzzyWatch([]byte(`{"receivedGroupKeys":[` + strings.Repeat("1,", maxReceived) + `1]}`)); err == nil {
		t.Error("fuzzy watch: no error")
	}
	for body, want := range map[string]Response{
		`{"resultCode":200,"errorCode":0,"success":false,"requestId":"17"}`: {"17", 200}, // Go
		`{"resultCode":200,"message":"","errorCode":0,"requestId":"17"}`:    {"17", 200}, // Python
		`{"resultCode":500,"errorCode":-500,"message":"x","requestId":17}`:  {"17", 500},
		`{}`: {},
	} {
		if got, err := DecodeResponse([]byte(body)); err != nil || got != want || got.OK() != (want.ResultCode == 200) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestDecodeSetup(t *testing.T) {
	for body, want := range map[string]Setup{
		`{"clientVersion":"Nacos-Go-Client:v2.3.5","tenant":"","labels":{"source":"sdk","module":"naming"},"clientAbilities":{}}`: {ClientVersion: "Nacos-Go-Client:v2.3.5", Labels: map[string]string{"source": "sdk", "module": "naming"}},
		`{"clientVersion":"Nacos-Java-Client:v2.5.1","abilityTable":{},"labels":{}}`:                                              {ClientVersion: "Nacos-Java-Client:v2.5.1", HasAbilities: true, Labels: map[string]string{}},
		`{"abilityTable":{"supportPersistentInstanceByGrpc":true,"fuzzyWatch":true}}`:                                             {HasAbilities: true, Newer: true},
		`{"abilityTable":{"fuzzyWatch":false},"tenant":null,"labels":null}`:                                                       {HasAbilities: true},
		`{"abilityTable":null,"abilities":{"remoteAbility":{"supportRemoteConnection":true}},"tenant":"t"}`:                       {Tenant: "t"},
	} {
		if got, err := DecodeSetup([]byte(body)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot %+v, %v\nwant %+v", body, got, err, want)
		}
	}
	for _, body := range []string{`{nope`, `{"labels":[]}`, `{"labels":{"a":{}}}`, `{"abilityTable":true}`} {
		if _, err := DecodeSetup([]byte(body)); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
	var many strings.Builder
	for n := range 10_000 {
		many.WriteString(`,"l` + strings.Repeat("x", n%10) + string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + `":"1"`)
	}
	if s, err := DecodeSetup([]byte(`{"labels":{` + many.String()[1:] + `}}`)); err != nil || len(s.Labels) > maxLabels {
		t.Errorf("%d labels, %v", len(s.Labels), err)
	}
}

// FuzzRequests tries every decoder. What encoding/json takes as an object of the
// right shape must be taken here, and nothing that it refuses.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"namespace":"n","serviceName":"s","groupName":"g","type":"registerInstance","instance":{"ip":"1","port":1,"metadata":{"a":"b"}}}`,
		`{"instances":[{},null],"cluster":"a","healthyOnly":true,"subscribe":true,"pageNo":1}`,
		`{"labels":{"a":"b"},"abilityTable":{"x":true}}`, `null`, `{"a":"\ud83d\ude00\ud83d"}`, `{"resultCode":200,"requestId":"1"}`, `{bad`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		_, _ = DecodeInstance(body)
		_, _ = DecodeBatch(body)
		_, _ = DecodeQuery(body)
		_, _ = DecodeSubscribe(body)
		_, _ = DecodeList(body)
		_, _ = DecodeFuzzyWatch(body)
		_, _ = DecodeSetup(body)
		_, _ = DecodeResponse(body)
		err := DecodeEmpty(body)
		if string(body) != before {
			t.Fatal("a decoder changed the request")
		}
		var object map[string]any
		dec := json.NewDecoder(strings.NewReader(before))
		theirs := dec.Decode(&object)
		shallow := strings.Count(before, "{")+strings.Count(before, "[") <= maxDepth
		if strings.ToValidUTF8(before, "") != before || !shallow {
			return // encoding/json repairs what is no UTF-8, and goes deeper
		}
		if errors.Is(err, ErrNull) {
			if theirs != nil || object != nil {
				t.Fatalf("null: encoding/json says %v, %v", object, theirs)
			}
			return
		}
		if (err == nil) != (theirs == nil) && !strings.Contains(before, "e") && !strings.Contains(before, "E") {
			t.Fatalf("%v, encoding/json says %v", err, theirs)
		}
		q, err := DecodeQuery(body)
		if name, ok := object["serviceName"].(string); err == nil && theirs == nil && ok && q.Name.Value != name {
			t.Fatalf("name %q, encoding/json reads %q", q.Name.Value, name)
		}
	})
}

func BenchmarkDecodeInstance(b *testing.B) {
	body := []byte(`{"headers":{},"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP","module":"naming","type":"registerInstance",` +
		`"instance":{"ip":"10.0.0.1","port":8080,"weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,"clusterName":"DEFAULT",` +
		`"serviceName":"DEFAULT_GROUP@@orders","metadata":{"zone":"a","version":"1.2.3"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeInstance(body); err != nil {
			b.Fatal(err)
		}
	}
}
