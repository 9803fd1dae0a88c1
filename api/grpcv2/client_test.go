package grpcv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// What a client encodes is what the decoders of the server read.
func TestClientRequests(t *testing.T) {
	s := &ServiceName{Namespace: "ns", Group: "g", Name: "orders \"é\""}
	i := Published{
		IP: "10.0.0.1", Port: 8080, Weight: 0.25, Enabled: true, Cluster: "c", Metadata: map[string]string{"k": "v\n", "a": "é"},
	}
	want := Service{Namespace: "ns", HasNamespace: true, Name: given(s.Name), Group: given("g")}
	instance := &Instance{
		IP: "10.0.0.1", Port: 8080, Weight: 0.25, Enabled: true, Cluster: given("c"), Service: s.Name,
		Metadata: []byte(`{"a":"é","k":"v\n"}`),
	}
	check := func(what string, body []byte, got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) || !json.Valid(body) {
			t.Errorf("%s %s: got %+v, %v\nwant %+v", what, body, got, err, want)
		}
	}
	body := AppendInstanceRequest(nil, s, Register, &i)
	one, err := DecodeInstance(body)
	check("instance", body, one, err, InstanceRequest{want, given(Register), instance})

	for _, n := range []int{1, 3} {
		body = AppendBatchRequest(nil, s, []Published{i, i, i}[:n])
		batch, err := DecodeBatch(body)
		check("batch", body, batch, err, BatchRequest{want, given(BatchRegister), []*Instance{instance, instance, instance}[:n:n], true})
	}

	body = AppendBatchRequest(nil, s, nil)
	batch, err := DecodeBatch(body)
	check("empty batch", body, batch, err, BatchRequest{want, given(BatchRegister), nil, true})

	body = AppendQueryRequest(nil, s)
	query, err := DecodeQuery(body)
	check("query", body, query, err, QueryRequest{want, given(""), false})

	for _, on := range []bool{true, false} {
		body = AppendSubscribeRequest(nil, s, on)
		sub, err := DecodeSubscribe(body)
		check("subscribe", body, sub, err, SubscribeRequest{want, given(""), on})
	}

	body = AppendListRequest(nil, "ns", "g", 2, 50)
	list, err := DecodeList(body)
	want.Name = given("")
	check("list", body, list, err, ListRequest{want, 2, 50})

	body = AppendFuzzyRequest(nil, Watch, "ns", "ns>>g>>*", []string{"ns@@g@@a", "ns@@g@@b"})
	fuzzy, err := DecodeFuzzyWatch(body)
	check("fuzzy watch", body, fuzzy, err, FuzzyWatchRequest{"ns", "ns>>g>>*", Watch, true, []string{"ns@@g@@a", "ns@@g@@b"}})

	setup := SetupRequest{ClientVersion: "A:v1", Tenant: "t", Labels: map[string]string{"module": "naming"}, Abilities: []string{"fuzzyWatch", "x"}}
	body = setup.Append(nil)
	got, err := DecodeSetup(body)
	check("setup", body, got, err, Setup{"A:v1", "t", true, true, map[string]string{"module": "naming"}})
	setup.Abilities = nil
	body = setup.Append(nil)
	got, err = DecodeSetup(body)
	check("setup without abilities", body, got, err, Setup{"A:v1", "t", true, false, map[string]string{"module": "naming"}})

	body = AppendAck(nil, "17")
	ack, err := DecodeResponse(body)
	check("acknowledgement", body, ack, err, Response{"17", ResultSuccess})
	body = AppendBare(nil)
	check("bare", body, nil, DecodeEmpty(body), nil)
}

// What a server encodes is what the readers of the client read.
func TestClientReaders(t *testing.T) {
	head := &ServiceHead{Name: given("orders"), Group: given("g"), Clusters: given("")}
	tail := ServiceTail{LastRefTime: 7}
	info := func(body []byte) []byte { return body[bytes.Index(body, []byte(`"serviceInfo":`))+14 : len(body)-1] }
	check := func(what string, body []byte, got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s: got %+v, %v\nwant %+v", what, body, got, err, want)
		}
	}
	read := func(what string, body []byte, want Answer) {
		t.Helper()
		got, err := ReadAnswer(body)
		check(what, body, got, err, want)
		if got.OK() != (want.ResultCode == ResultSuccess) {
			t.Errorf("%s is taken as the opposite", what)
		}
	}
	read("success", AppendSuccess(nil), Answer{ResultCode: 200})
	read("failure", AppendFailure(nil, &Failure{500, 301, "no"}), Answer{ResultCode: 500, ErrorCode: 301, Message: "no"})
	read("check", AppendServerCheck(nil, "1_a_2"), Answer{ResultCode: 200, ConnectionID: "1_a_2", Negotiates: true})
	read("list", AppendServices(nil, 9, []string{"a", "b"}), Answer{ResultCode: 200, Count: 9, Names: []string{"a", "b"}})
	body := AppendServiceTail(AppendQueryHead(nil, head), tail, nil)
	read("query", body, Answer{ResultCode: 200, Info: info(body)})
	body = AppendServiceTail(AppendSubscribeHead(nil, head), tail, func(b []byte) []byte { return append(b, `{"ip":"}\""}`...) })
	read("subscribe", body, Answer{ResultCode: 200, Message: "success", Info: info(body)})

	body = AppendServiceTail(AppendNotifyHead(nil, 3, head), tail, func(b []byte) []byte { return append(b, `{"ip":"]}\\"}`...) })
	n, err := ReadNotify(body)
	check("push", body, n, err, Notify{RequestID: "3", Name: "orders", Group: "g", Info: info(body)})
	body = []byte(`{"requestId":1,"namespace":"ns","serviceInfo":null}`)
	n, err = ReadNotify(body)
	check("push of nothing", body, n, err, Notify{RequestID: "1", Namespace: "ns"})

	ask := func(what string, body []byte, want ServerRequest) {
		t.Helper()
		got, err := ReadServerRequest(body)
		check(what, body, got, err, want)
	}
	ask("setup", AppendSetupAck(nil, "a", "b"), ServerRequest{Abilities: []string{"a", "b"}})
	ask("disabled", []byte(`{"abilityTable":{"a":false,"b":null,"c":true}}`), ServerRequest{Abilities: []string{"c"}})
	ask("detection", AppendClientDetection(nil, 4), ServerRequest{RequestID: "4"})
	ask("reset", AppendConnectReset(nil, 5, "10.0.0.1", "8848"), ServerRequest{RequestID: "5", Host: "10.0.0.1", Port: "8848"})
	ask("reset anywhere", AppendConnectReset(nil, 5, "", ""), ServerRequest{RequestID: "5"})
	sync := FuzzySync{SyncInit, "ns>>g>>*", []FuzzyChange{{"ns@@g@@a", AddService}, {"ns@@g@@b", DeleteService}}, 1, 2}
	ask("sync", AppendFuzzySync(nil, 6, &sync), ServerRequest{RequestID: "6", Fuzzy: sync})
	one := FuzzyChange{"ns@@g@@a", AddService}
	ask("change", AppendFuzzyNotify(nil, 7, one), ServerRequest{RequestID: "7", Fuzzy: FuzzySync{Kind: "FUZZY_WATCH_RESOURCE_CHANGED", Changes: []FuzzyChange{one}}})
}

func TestClientReadersRefuse(t *testing.T) {
	for _, body := range []string{
		"", "{", "[]", `"x"`, `{"serviceInfo":[]}`, `{"serviceInfo":{`, `{"serviceInfo":{"name":"a"`, `{"serviceInfo":{"hosts":[`,
		`{"serviceInfo":{"hosts":["]}`, `{"serviceInfo":{"a":"\`, `{"serviceInfo":"x"}`, `{"requestId":{}}`, `{"serviceInfo":{"name":{}}}`,
	} {
		a, err := ReadAnswer([]byte(body))
		n, err2 := ReadNotify([]byte(body))
		if err == nil && !strings.HasPrefix(body, `{"serviceInfo":{"name":{}}`) || err2 == nil {
			t.Errorf("%q: %+v %v, %+v %v", body, a, err, n, err2)
		}
	}
	long := `"x"` + strings.Repeat(`,"x"`, maxNames)
	if _, err := ReadAnswer([]byte(`{"serviceNames":[` + long + `]}`)); !errors.Is(err, errNames) {
		t.Errorf("too many names: %v", err)
	}
	if q, err := ReadServerRequest([]byte(`{"contexts":[{}` + strings.Repeat(`,{}`, maxContexts) + `]}`)); !errors.Is(err, errContexts) {
		t.Errorf("too many changes: %d %v", len(q.Fuzzy.Changes), err)
	}
}

// FuzzClientReaders tries what reads the bytes of servers: nothing is changed, what is
// taken as a list lies within the body and is an object, and valid JSON is read as
// encoding/json reads it.
func FuzzClientReaders(f *testing.F) {
	for _, seed := range []string{
		`{"resultCode":200,"errorCode":0,"success":true,"serviceInfo":{"name":"a","groupName":"g","hosts":[{"ip":"}\"]"}]},"count":1,"serviceNames":["a",null]}`,
		`{"requestId":"1","abilityTable":{"a":true},"serverIp":"a","serverPort":"1","contexts":[{"serviceKey":"a@@b@@c","changedType":"ADD_SERVICE"}]}`,
		`{"serviceInfo":{"a":"\\\\\"}","b":{"c":[[]]}}}`, `null`, `{"serviceInfo":null}`, `{bad`, `{"serviceInfo":{"x":"\"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		a, err := ReadAnswer(body)
		n, err2 := ReadNotify(body)
		_, _ = ReadServerRequest(body)
		if string(body) != before {
			t.Fatal("a reader changed the message")
		}
		var theirs struct{ ServiceInfo json.RawMessage }
		if !json.Valid(body) || json.Unmarshal(body, &theirs) != nil || strings.Count(before, "erviceInfo") > 1 {
			return
		}
		for _, info := range [][]byte{a.Info, n.Info} {
			if info != nil && (info[0] != '{' || info[len(info)-1] != '}') {
				t.Fatalf("a list is %q", info)
			}
		}
		if bytes.Contains(body, []byte(`"serviceInfo"`)) && len(theirs.ServiceInfo) > 0 && theirs.ServiceInfo[0] == '{' {
			for _, got := range []struct {
				info []byte
				err  error
			}{{a.Info, err}, {n.Info, err2}} {
				if got.err == nil && !bytes.Equal(got.info, theirs.ServiceInfo) {
					t.Fatalf("a list is %q, encoding/json says %q", got.info, theirs.ServiceInfo)
				}
			}
		}
	})
}

// push returns a push of a service with so many hosts, as a server of ours writes it.
func push(hosts int) []byte {
	head := &ServiceHead{Name: given("orders"), Group: given("g"), Clusters: given("")}
	return AppendServiceTail(AppendNotifyHead(nil, 3, head), ServiceTail{LastRefTime: 7}, func(b []byte) []byte {
		for n := range hosts {
			if n > 0 {
				b = append(b, ',')
			}
			b = AppendHost(b, &Host{
				ID: []byte("10.0.0.1#8080#DEFAULT#g@@orders"), IP: fmt.Sprintf("10.0.%d.%d", n>>8, n&255), Port: 8080, Cluster: "DEFAULT",
				Service: "g@@orders", Metadata: `{"version":"1.2.3","zone":"a"}`, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
			})
		}
		return b
	})
}

func BenchmarkReadNotify10000(b *testing.B) {
	body := push(10_000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := ReadNotify(body); err != nil || n.Name != "orders" || len(n.Info) < len(body)-100 {
			b.Fatal(err)
		}
	}
}
