package foreign

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// noConfigurations says why nothing can be published. A client shows it to people
// who took this server for one of Nacos.
const noConfigurations = "Rollcall is a service registry and keeps no configurations"

// generation is how one generation of the API says what there is to say.
type generation struct {
	path string
	// missing answers that a configuration does not exist, which clients read as
	// null; a 403 or 500 would make them retry or fail.
	missing httpapi.Handler
	// refuse answers a change: never as a success, and not with a status that
	// makes clients try the next server.
	refuse httpapi.Handler
}

// configRoutes are the calls of each generation for one configuration. The paths
// and answers are those of Nacos 1.4.8, 2.5.1 and 3.0.3. They need no permission:
// there is nothing to protect, and a 403 is what clients take worst.
func (a *API) configRoutes() []httpapi.Route {
	routes := []httpapi.Route{{
		Methods: []string{"POST"}, Path: "/v1/cs/configs/listener",
		Resource: httpapi.Open, Action: httpapi.Read, Handler: listen,
	}}
	for _, g := range []generation{
		{"/v1/cs/configs", v1Config, refuseV1},
		{"/v2/cs/config", missingV2, refuseResult},
		{"/v3/client/cs/config", missingV3Client, refuseResult},
		{"/v3/admin/cs/config", missingV3, refuseResult},
		{"/v3/console/cs/config", missingV3, refuseResult},
	} {
		routes = append(routes, httpapi.Get(g.path, httpapi.Open, g.missing), httpapi.Route{
			Methods: []string{"POST", "DELETE"}, Path: g.path,
			Resource: httpapi.Open, Action: httpapi.Write, Handler: g.refuse,
		})
	}
	return routes
}

// v1Config answers GET /v1/cs/configs: one configuration, or for consoles and
// tools a search (an empty page) or all of one (nothing).
func v1Config(x *httpapi.Exchange) {
	p := x.Params()
	if _, search := p.Raw("search"); search {
		x.JSON(200, []byte(`{"totalCount":0,"pageNumber":1,"pagesAvailable":0,"pageItems":[]}`))
		return
	}
	if show, _ := p.Raw("show"); show == "all" {
		x.Empty(200)
		return
	}
	x.Text(404, "config data not exist")
}

func refuseV1(x *httpapi.Exchange) { x.Caused(501, noConfigurations) }

// Codes of a result of v2 and v3. Source: Nacos api.model.v2.ErrorCode.
const (
	codeNotFound = 20004
	codeServer   = 30000
)

func missingV2(x *httpapi.Exchange) {
	result(x, 404, codeNotFound, "resource not found", "config data not exist")
}

func missingV3(x *httpapi.Exchange) {
	result(x, 404, codeNotFound, "resource not found", "Config not exist, please publish Config first.")
}

// missingV3Client answers with a status of 200, as 3.0.3 does to clients: they
// read the code.
func missingV3Client(x *httpapi.Exchange) { result(x, 200, codeNotFound, "resource not found", "") }

func refuseResult(x *httpapi.Exchange) { result(x, 501, codeServer, "server error", noConfigurations) }

// result answers the envelope of v2 and v3. Empty data is null.
func result(x *httpapi.Exchange, status, code int, message, data string) {
	b := append(x.Scratch[:0], `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = registry.AppendJSONString(b, message)
	b = append(b, `,"data":`...)
	if data == "" {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, data)
	}
	x.Scratch = append(b, '}')
	x.JSON(status, x.Scratch)
}
