package v2

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// beginRest begins a RestResult, the envelope of calls that 2.x has kept from 1.x.
// The data and a closing brace must follow.
func beginRest(b []byte, code int, message string) []byte {
	b = strconv.AppendInt(append(b, `{"code":`...), int64(code), 10)
	b = append(b, `,"message":`...)
	if message == "" {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, message)
	}
	return append(b, `,"data":`...)
}

func failRest(x *httpapi.Exchange, status int, message string) {
	x.Scratch = append(beginRest(x.Scratch[:0], status, message), "null}"...)
	x.JSON(status, x.Scratch)
}

// failLoader answers a fault in the parameters of the loader's calls.
func failLoader(x *httpapi.Exchange, err error) {
	failRest(x, 500, htmlEscaper.Replace(causes(err)))
}

// htmlEscaper escapes as Spring's HtmlUtils does.
var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// causes words a fault of a parameter as calls without the envelope do.
func causes(err error) string {
	if e, ok := errors.AsType[*result.ParamError](err); ok {
		return "caused: " + result.ParamText(e.Mismatch, true) + ";caused: " + e.Cause() + ";"
	}
	return "caused: " + err.Error() + ";"
}

// selfHealth answers GET /core/cluster/node/self/health.
func (a *API) selfHealth(x *httpapi.Exchange) {
	a.Data(x, registry.AppendJSONString(result.Begin(x.Scratch[:0]), a.Members.Self().State))
}

// connections answers GET /core/loader/current, without an envelope.
func (a *API) connections(x *httpapi.Exchange) {
	x.Scratch = a.AppendConnections(x.Scratch[:0])
	x.JSON(200, x.Scratch)
}

// loads answers GET /core/loader/cluster, without an envelope. Numbers within
// metric are texts.
func (a *API) loads(x *httpapi.Exchange) {
	load := a.Burden()
	count := strconv.Itoa(load.Connections)
	b := append(x.Scratch[:0], `{"total":`+count+`,"min":`+count+`,"avg":`+count+`,"max":`+count+
		`,"memberCount":`+strconv.Itoa(len(a.Members.Members()))+`,"metricsCount":1,"threshold":`...)
	b = modern.AppendDouble(b, load.Threshold())
	b = modern.AppendText(append(b, `,"detail":[{`...), "address", load.Address)
	b = append(b, `,"metric":{"load":"`...)
	b = modern.AppendFloat(b, float32(load.Average))
	b = append(b, `","sdkConCount":"`+count+`","cpu":"`...)
	b = modern.AppendFloat(b, float32(load.CPU))
	b = append(b, `","conCount":"`+count+`"}}],"completed":`...)
	b = strconv.AppendBool(b, len(a.Members.Members()) == 1)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

const reloaded = "success"

// shed answers GET /core/loader/reloadCurrent.
func (a *API) shed(x *httpapi.Exchange) {
	f := result.NewParams(x)
	count := f.NeedInt("count")
	if err := f.Err(); err != nil {
		failLoader(x, err)
		return
	}
	a.ShedTo(count, f.Text("redirectAddress", ""))
	x.Text(200, reloaded)
}

// resetClient answers GET /core/loader/reloadClient.
func (a *API) resetClient(x *httpapi.Exchange) {
	f := result.NewParams(x)
	id := f.Need("connectionId")
	if err := f.Err(); err != nil {
		failLoader(x, err)
		return
	}
	a.ResetClient(x, id, f.Text("redirectAddress", ""))
	x.Text(200, reloaded)
}

// balance answers GET /core/loader/smartReloadCluster: a server that is alone has
// nobody to send clients to.
func (a *API) balance(x *httpapi.Exchange) { x.Text(200, reloaded) }

// ids answers GET /core/ops/ids: the generators of numbers for the database of
// Nacos, of which there are none.
func (a *API) ids(x *httpapi.Exchange) {
	x.Scratch = append(beginRest(x.Scratch[:0], 200, ""), "[]}"...)
	x.JSON(200, x.Scratch)
}

// setLogLevel answers PUT /core/ops/log, whose body is JSON.
func (a *API) setLogLevel(x *httpapi.Exchange) {
	var body struct {
		Name  string `json:"logName"`
		Level string `json:"logLevel"`
	}
	if err := json.Unmarshal(x.Body(), &body); err != nil {
		failRest(x, 500, "caused: the body is no JSON object;")
		return
	}
	a.SetLogLevel(body.Name, body.Level)
	x.Scratch = append(beginRest(x.Scratch[:0], 200, ""), "null}"...)
	x.JSON(200, x.Scratch)
}
