package v3

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
)

// countNamespace answers GET /admin/core/namespace/check: 1 when somebody created
// the namespace, which nobody did with the default one.
func (a *API) countNamespace(x *httpapi.Exchange) {
	f := result.NewParams(x)
	id := f.Need("namespaceId")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	n := 0
	if a.HasNamespace(id) {
		n = 1
	}
	a.Data(x, strconv.AppendInt(result.Begin(x.Scratch[:0]), int64(n), 10))
}

// namespaceExists answers GET /console/core/namespace/exist: whether the ID is taken.
func (a *API) namespaceExists(x *httpapi.Exchange) {
	f := result.NewParams(x)
	id := f.Need("customNamespaceId")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	taken := id == style.PublicID || id != "" && a.HasNamespace(id)
	a.Data(x, strconv.AppendBool(result.Begin(x.Scratch[:0]), taken))
}

// nodes answers GET /console/core/cluster/nodes.
func (a *API) nodes(x *httpapi.Exchange) {
	keyword := result.NewParams(x).Text("keyword", "")
	a.AnswerMembers(x, Version, func(m naming.Member) bool { return strings.HasPrefix(m.Address(), keyword) })
}

// lookup answers PUT /admin/core/cluster/lookup, by which Nacos changes how members
// find each other.
func (a *API) lookup(x *httpapi.Exchange) {
	switch kind, sent := x.Params().Get("type"); {
	case !sent:
		a.Fail(x, result.Missing("required parameter 'type' is missing"))
	case kind != "file" && kind != "address-server":
		a.Fail(x, result.Invalid("The addressing mode exists : "+kind+", just support : [[FILE_CONFIG, ADDRESS_SERVER]]"))
	default:
		a.NoSuchOperation(x)
	}
}

// connections answers GET /admin/core/loader/current.
func (a *API) connections(x *httpapi.Exchange) {
	a.Data(x, a.AppendConnections(result.Begin(x.Scratch[:0])))
}

// loads answers GET /admin/core/loader/cluster.
func (a *API) loads(x *httpapi.Exchange) {
	load, members := a.Burden(), len(a.Members.Members())
	count := strconv.Itoa(load.Connections)
	b := modern.AppendText(append(result.Begin(x.Scratch[:0]), `{"detail":[{`...), "address", load.Address)
	b = append(b, `,"sdkConCount":`+count+`,"conCount":`+count+`,"load":"`...)
	b = modern.AppendFloat(b, float32(load.Average))
	b = append(b, `","cpu":"`...)
	b = modern.AppendFloat(b, float32(load.CPU))
	b = append(b, `"}],"memberCount":`+strconv.Itoa(members)+`,"metricsCount":1,"completed":`+strconv.FormatBool(members == 1)+
		`,"max":`+count+`,"min":`+count+`,"avg":`+count+`,"threshold":"`...)
	b = modern.AppendDouble(b, load.Threshold())
	a.Data(x, append(b, `","total":`+count+`}`...))
}

// nothing answers a success without data.
func (a *API) nothing(x *httpapi.Exchange) {
	a.Data(x, append(result.Begin(x.Scratch[:0]), "null"...))
}

// shed answers POST /admin/core/loader/reloadCurrent.
func (a *API) shed(x *httpapi.Exchange) {
	f := result.NewParams(x)
	count := f.NeedInt("count")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	a.ShedTo(count, f.Text("redirectAddress", ""))
	a.nothing(x)
}

// resetClient answers POST /admin/core/loader/reloadClient.
func (a *API) resetClient(x *httpapi.Exchange) {
	f := result.NewParams(x)
	id := f.Need("connectionId")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	a.ResetClient(x, id, f.Text("redirectAddress", ""))
	a.nothing(x)
}

// balance answers POST /admin/core/loader/smartReloadCluster: a server that is alone
// has nobody to send clients to.
func (a *API) balance(x *httpapi.Exchange) { a.nothing(x) }

// ids answers GET /admin/core/ops/ids: the generators of numbers for the database of
// Nacos, of which there are none.
func (a *API) ids(x *httpapi.Exchange) {
	a.Data(x, append(result.Begin(x.Scratch[:0]), "[]"...))
}

// setCoreLogLevel answers PUT /admin/core/ops/log, whose body is JSON.
func (a *API) setCoreLogLevel(x *httpapi.Exchange) {
	kind := x.Header("Content-Type")
	if !strings.Contains(kind, "json") {
		a.Fail(x, &result.Fault{Status: 400, Code: result.MediaType, Data: "Content-Type '" + mediaType(kind) + "' is not supported"})
		return
	}
	var body struct {
		Name  string `json:"logName"`
		Level string `json:"logLevel"`
	}
	if err := json.Unmarshal(x.Body(), &body); err != nil {
		a.Fail(x, result.Missing("the body is no JSON object"))
		return
	}
	a.SetLogLevel(body.Name, body.Level)
	a.nothing(x)
}

// mediaType is how the original names the type of a body: with the encoding that it
// assumes.
func mediaType(kind string) string {
	if kind == "" {
		return "application/octet-stream"
	}
	if !strings.Contains(kind, "charset") {
		kind += ";charset=UTF-8"
	}
	return kind
}

// state answers GET /admin/core/state.
func (a *API) state(x *httpapi.Exchange) {
	a.Data(x, a.appendState(result.Begin(x.Scratch[:0])))
}

// bareState answers GET /console/server/state, without the envelope.
func (a *API) bareState(x *httpapi.Exchange) {
	x.Scratch = a.appendState(x.Scratch[:0])
	x.JSON(200, x.Scratch)
}

// appendState appends what consoles and clients of 3.x ask about a server. Those
// about configurations are Nacos' defaults, for consoles that read them unasked.
func (a *API) appendState(b []byte) []byte {
	b = append(b, `{"function_mode":null`...)
	for _, s := range []struct{ name, value string }{
		{"version", Version},
		{"startup_mode", "standalone"},
		{"server_port", strconv.Itoa(a.Members.Self().Port)},
		{"auth_enabled", "false"},
		{"auth_system_type", "nacos"},
		{"auth_admin_request", "false"},
		{"login_page_enabled", "false"},
		{"console_ui_enabled", "false"},
		{"config_retention_days", "30"},
		{"datasource_platform", ""},
		{"plugin_datasource_log_enabled", "false"},
		{"isManageCapacity", "true"},
		{"isCapacityLimitCheck", "false"},
		{"isHealthCheck", "true"},
		{"maxHealthCheckFailCount", "12"},
		{"maxContent", "10485760"},
		{"defaultMaxSize", "102400"},
		{"defaultMaxAggrSize", "1024"},
		{"defaultMaxAggrCount", "10000"},
		{"defaultGroupQuota", "200"},
		{"defaultClusterQuota", "100000"},
		{"notifyConnectTimeout", "100"},
		{"notifySocketTimeout", "200"},
	} {
		b = modern.AppendText(b, s.name, s.value)
	}
	return append(b, '}')
}
