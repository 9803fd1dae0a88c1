package grpcv2

import (
	"encoding/json"
	"strings"
	"testing"
)

func hosts(list ...Host) func([]byte) []byte {
	return func(b []byte) []byte {
		for n := range list {
			if n > 0 {
				b = append(b, ',')
			}
			b = AppendHost(b, &list[n])
		}
		return b
	}
}

func sampleHost() Host {
	return Host{
		ID: []byte("10.0.0.1#8080#DEFAULT#g@@s"), IP: "10.0.0.1", Port: 8080, Cluster: "DEFAULT", Service: "g@@s", Metadata: `{"a":"1"}`,
		Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
		BeatIntervalMillis: 5000, BeatTimeoutMillis: 15000, DeleteTimeoutMillis: 30000,
	}
}

func head() *ServiceHead {
	return &ServiceHead{Name: given("s"), Group: given("g"), Clusters: given(""), CacheMillis: 10000}
}

func withTail(b []byte, list ...Host) []byte {
	return AppendServiceTail(b, ServiceTail{LastRefTime: 1700000000000}, hosts(list...))
}

// messages are all that the server writes, by name, with the text that is
// expected.
func messages() map[string]struct{ got, want string } {
	const info = `"serviceInfo":{"name":"s","groupName":"g","clusters":"","cacheMillis":10000,"checksum":"","valid":true,"allIPs":false,` +
		`"hosts":[{"instanceId":"10.0.0.1#8080#DEFAULT#g@@s","ip":"10.0.0.1","port":8080,"weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,` +
		`"clusterName":"DEFAULT","serviceName":"g@@s","metadata":{"a":"1"},"instanceHeartBeatInterval":5000,"instanceHeartBeatTimeOut":15000,"ipDeleteTimeout":30000}],` +
		`"lastRefTime":1700000000000,"reachProtectionThreshold":false}}`
	type message = struct{ got, want string }
	return map[string]message{
		ServerCheckResponse: {
			string(AppendServerCheck(nil, "1_10.0.0.7_5")),
			`{"resultCode":200,"errorCode":0,"success":true,"connectionId":"1_10.0.0.7_5","supportAbilityNegotiation":true}`,
		},
		HealthCheckResponse: {string(AppendSuccess(nil)), `{"resultCode":200,"errorCode":0,"success":true}`},
		ErrorResponse: {
			string(AppendFailure(nil, &Failure{500, 301, "Connection is unregistered."})),
			`{"resultCode":500,"errorCode":301,"success":false,"message":"Connection is unregistered."}`,
		},
		InstanceResponse:         {string(AppendInstanceDone(nil, Register)), `{"resultCode":200,"errorCode":0,"success":true,"type":"registerInstance"}`},
		QueryServiceResponse:     {string(withTail(AppendQueryHead(nil, head()), sampleHost())), `{"resultCode":200,"errorCode":0,"success":true,` + info},
		SubscribeServiceResponse: {string(withTail(AppendSubscribeHead(nil, head()), sampleHost())), `{"resultCode":200,"errorCode":0,"success":true,"message":"success",` + info},
		ServiceListResponse: {
			string(AppendServices(nil, 3, []string{"a", "b"})),
			`{"resultCode":200,"errorCode":0,"success":true,"count":3,"serviceNames":["a","b"]}`,
		},
		ServiceListResponse + " refused": {
			string(AppendServicesRefused(nil, &Failure{500, 400, "x"})),
			`{"resultCode":500,"errorCode":400,"success":false,"message":"x","count":0}`,
		},
		ConfigQueryResponse: {
			string(AppendConfigMissing(nil, &Failure{500, 300, "x"})),
			`{"resultCode":500,"errorCode":300,"success":false,"message":"x","lastModified":0,"beta":false}`,
		},
		ConfigListenResponse: {string(AppendNoChange(nil)), `{"resultCode":200,"errorCode":0,"success":true,"changedConfigs":[]}`},
		NotifySubscriber: {
			string(withTail(AppendNotifyHead(nil, 17, head()), sampleHost())),
			`{"headers":{},"module":"naming","requestId":"17",` + info,
		},
		SetupAck: {
			string(AppendSetupAck(nil, AbilityPersistent, AbilityFuzzyWatch)),
			`{"headers":{},"module":"internal","abilityTable":{"supportPersistentInstanceByGrpc":true,"fuzzyWatch":true}}`,
		},
		ClientDetection: {string(AppendClientDetection(nil, 17)), `{"headers":{},"module":"internal","requestId":"17"}`},
		ConnectReset: {
			string(AppendConnectReset(nil, 17, "10.0.0.2", "8848")),
			`{"headers":{},"module":"internal","requestId":"17","serverIp":"10.0.0.2","serverPort":"8848"}`,
		},
		ConnectReset + " anywhere": {string(AppendConnectReset(nil, 17, "", "")), `{"headers":{},"module":"internal","requestId":"17"}`},
		FuzzyWatchSync: {
			string(AppendFuzzySync(nil, 17, &FuzzySync{Kind: SyncInit, Pattern: "n>>g>>*", Changes: []FuzzyChange{{"n@@g@@s", AddService}, {"n@@g@@t", AddService}}, Batch: 1, Batches: 2})),
			`{"headers":{},"module":"naming","requestId":"17","syncType":"FUZZY_WATCH_INIT_NOTIFY","groupKeyPattern":"n>>g>>*",` +
				`"contexts":[{"serviceKey":"n@@g@@s","changedType":"ADD_SERVICE"},{"serviceKey":"n@@g@@t","changedType":"ADD_SERVICE"}],"totalBatch":2,"currentBatch":1}`,
		},
		FuzzyWatchSync + " finish": {
			string(AppendFuzzySync(nil, 17, &FuzzySync{Kind: SyncFinish, Pattern: "p", Batch: 1, Batches: 1})),
			`{"headers":{},"module":"naming","requestId":"17","syncType":"FINISH_FUZZY_WATCH_INIT_NOTIFY","groupKeyPattern":"p","contexts":[],"totalBatch":1,"currentBatch":1}`,
		},
		FuzzyWatchChange: {
			string(AppendFuzzyNotify(nil, 17, FuzzyChange{"n@@g@@s", DeleteService})),
			`{"headers":{},"module":"naming","requestId":"17","syncType":"FUZZY_WATCH_RESOURCE_CHANGED","serviceKey":"n@@g@@s","changedType":"DELETE_SERVICE"}`,
		},
	}
}

func TestMessages(t *testing.T) {
	for name, m := range messages() {
		if m.got != m.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, m.got, m.want)
		}
	}
}

// members are the kinds of JSON values that an SDK must find. A name with dots
// goes into objects, and into the first element of arrays.
type members map[string]string

const (
	text    = "text"
	integer = "integer"
	double  = "double"
	boolean = "boolean"
	object  = "object"
	array   = "array"
)

func serviceInfo(path string) members {
	return members{
		path + ".name": text, path + ".groupName": text, path + ".clusters": text, path + ".cacheMillis": integer,
		path + ".lastRefTime": integer, path + ".checksum": text, path + ".reachProtectionThreshold": boolean, path + ".hosts": array,
		path + ".hosts.ip": text, path + ".hosts.port": integer, path + ".hosts.weight": double, path + ".hosts.healthy": boolean,
		path + ".hosts.enabled": boolean, path + ".hosts.ephemeral": boolean, path + ".hosts.metadata": object,
		path + ".hosts.clusterName": text, path + ".hosts.serviceName": text, path + ".hosts.instanceId": text,
		path + ".hosts.instanceHeartBeatInterval": integer, path + ".hosts.instanceHeartBeatTimeOut": integer, path + ".hosts.ipDeleteTimeout": integer,
	}
}

func join(parts ...members) members {
	all := members{}
	for _, p := range parts {
		for k, v := range p {
			all[k] = v
		}
	}
	return all
}

// TestSDKsFindWhatTheyNeed holds every message against what each SDK insists on,
// read from the SDKs' sources and found by trial: Go wants success, Rust both
// codes, headers and every flag of a service and its hosts, Python refuses nulls
// and wants groupName and serviceNames, Java wants the connection's ID and the
// table of abilities, Node tells integers from doubles.
func TestSDKsFindWhatTheyNeed(t *testing.T) {
	answer := members{"resultCode": integer, "errorCode": integer, "success": boolean}
	request := members{"headers": object, "requestId": text, "module": text}
	for _, tt := range []struct {
		sdk  string
		need map[string]members
	}{
		{"go", map[string]members{
			ServerCheckResponse: join(answer, members{"connectionId": text}), HealthCheckResponse: answer,
			ErrorResponse:    join(answer, members{"message": text}),
			InstanceResponse: answer, ServiceListResponse: join(answer, members{"count": integer, "serviceNames": array}),
			QueryServiceResponse:     join(answer, serviceInfo("serviceInfo")),
			SubscribeServiceResponse: join(answer, serviceInfo("serviceInfo")),
			NotifySubscriber:         join(request, serviceInfo("serviceInfo")), ClientDetection: request, ConnectReset: join(request, members{"serverIp": text, "serverPort": text}),
		}},
		{"rust", map[string]members{
			ServerCheckResponse: join(answer, members{"connectionId": text}), HealthCheckResponse: answer,
			QueryServiceResponse: join(answer, serviceInfo("serviceInfo"), members{"serviceInfo.allIPs": boolean}),
			NotifySubscriber:     join(request, serviceInfo("serviceInfo"), members{"serviceInfo.allIPs": boolean}), ClientDetection: request,
		}},
		{"python", map[string]members{
			ServerCheckResponse: join(answer, members{"supportAbilityNegotiation": boolean}), SetupAck: {"headers": object, "abilityTable": object},
			ServiceListResponse: join(answer, members{"count": integer, "serviceNames": array}),
			NotifySubscriber:    join(request, serviceInfo("serviceInfo")),
		}},
		{"java", map[string]members{
			ServerCheckResponse: join(answer, members{"connectionId": text, "supportAbilityNegotiation": boolean}),
			SetupAck:            {"abilityTable": object, "abilityTable.supportPersistentInstanceByGrpc": boolean},
			FuzzyWatchSync:      join(request, members{"contexts.serviceKey": text, "contexts.changedType": text, "totalBatch": integer, "currentBatch": integer}),
			FuzzyWatchChange:    join(request, members{"serviceKey": text, "changedType": text}),
		}},
	} {
		for kind, need := range tt.need {
			body := messages()[kind].got
			for path, want := range need {
				if got := kindAt(t, body, path); got != want {
					t.Errorf("%s: %s of %s is %q, want %s", tt.sdk, path, kind, got, want)
				}
			}
		}
	}
	for kind, m := range messages() {
		if strings.Contains(m.got, "null") {
			t.Errorf("%s has a null: %s", kind, m.got)
		}
	}
}

// kindAt returns the kind of the value at a path of names, empty when there is
// none.
func kindAt(t *testing.T, body, path string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for name := range strings.SplitSeq(path, ".") {
		if list, ok := v.([]any); ok {
			v = list[0]
		}
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[name]
	}
	switch v := v.(type) {
	case string:
		return text
	case bool:
		return boolean
	case map[string]any:
		return object
	case []any:
		return array
	case json.Number:
		if strings.Contains(v.String(), ".") {
			return double
		}
		return integer
	default:
		return ""
	}
}

func TestServiceForms(t *testing.T) {
	for name, tt := range map[string]struct {
		head ServiceHead
		want string
	}{
		"nothing given": {ServiceHead{CacheMillis: 1}, `{"cacheMillis":1,"checksum":"","valid":true,"allIPs":false,"hosts":[],"lastRefTime":5,"reachProtectionThreshold":true}`},
		"3.x, escapes":  {ServiceHead{Name: given("a\"b"), Group: given("\x01\n"), Clusters: given("x,y"), Newer: true}, `{"name":"a\"b","groupName":"\u0001\n","clusters":"x,y","cacheMillis":0,"checksum":"","valid":true,"allIps":false,"hosts":[],"lastRefTime":5,"reachProtectionThreshold":true}`},
	} {
		b := AppendServiceTail(AppendQueryHead(nil, &tt.head), ServiceTail{LastRefTime: 5, Protected: true}, nil)
		if got, want := string(b), `{"resultCode":200,"errorCode":0,"success":true,"serviceInfo":`+tt.want+`}`; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Host)
		want   string
	}{
		"odd ID":       {func(h *Host) { h.ID = []byte(`my"id`) }, `"instanceId":"my\"id",`},
		"no ID":        {func(h *Host) { h.ID = nil }, `{"ip":"10.0.0.1"`},
		"odd names":    {func(h *Host) { h.IP, h.Service = `a"b`, "g@@\xff" }, `"ip":"a\"b"`},
		"generator":    {func(h *Host) { h.IDGenerator = "simple" }, `30000,"instanceIdGenerator":"simple"}`},
		"weights":      {func(h *Host) { h.Weight = 0.125 }, `"weight":0.125,`},
		"small weight": {func(h *Host) { h.Weight = 1e-7 }, `"weight":0.0000001,`},
		"flags":        {func(h *Host) { h.Healthy, h.Enabled, h.Ephemeral = false, false, false }, `"healthy":false,"enabled":false,"ephemeral":false`},
	} {
		h := sampleHost()
		tt.change(&h)
		got := string(AppendHost(nil, &h))
		if !strings.Contains(got, tt.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s, want %s in it", name, got, tt.want)
		}
	}
}

func BenchmarkAppendHosts(b *testing.B) {
	list := make([]Host, 10)
	for n := range list {
		list[n] = sampleHost()
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = withTail(AppendNotifyHead(buf[:0], 17, head()), list...)
	}
}
