package v1

import (
	"encoding/json"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// coreRoutes are the calls about members that consoles and members send.
func (a *API) coreRoutes() []httpapi.Route {
	const cluster, ops = "/v1/core/cluster", "/v1/core/ops"
	return []httpapi.Route{
		httpapi.Get(cluster+"/self", httpapi.Open, a.self),
		httpapi.Get(cluster+"/nodes", httpapi.Open, a.nodes),
		httpapi.Get(cluster+"/simple/nodes", httpapi.Open, a.simpleNodes),
		httpapi.Get(cluster+"/health", httpapi.Open, a.memberHealth),
		httpapi.Change("POST", cluster+"/report", httpapi.Open, a.report),
		httpapi.Change("POST", cluster+"/switch/lookup", httpapi.Open, a.noSuchOperation),
		httpapi.Change("POST", cluster+"/server/leave", httpapi.Open, a.noSuchOperation),
		httpapi.Change("POST", ops+"/raft", httpapi.Open, a.noSuchOperation),
		httpapi.Get(ops+"/idInfo", httpapi.Open, a.idInfo),
		httpapi.Change("PUT", ops+"/log", resourceLog, a.setCoreLogLevel),
	}
}

func (a *API) self(x *httpapi.Exchange) {
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = appendMember(b, a.members.Self())
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// nodes answers GET /core/cluster/nodes: the members whose address begins with
// the keyword.
func (a *API) nodes(x *httpapi.Exchange) {
	keyword := x.Params().BoundOptional("keyword", "")
	var list []naming.Member
	for _, m := range a.members.Members() {
		if strings.HasPrefix(m.Address(), keyword) {
			list = append(list, m)
		}
	}
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = appendMembers(b, list)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

func (a *API) simpleNodes(x *httpapi.Exchange) {
	var addresses []string
	for _, m := range a.members.Members() {
		addresses = append(addresses, m.Address())
	}
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = appendStrings(b, addresses)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

func (a *API) memberHealth(x *httpapi.Exchange) {
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = registry.AppendJSONString(b, a.members.Self().State)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// report answers POST /core/cluster/report, by which a server tells a member of
// itself: "true" when it is a member too, else "false".
func (a *API) report(x *httpapi.Exchange) {
	var m struct {
		IP   string `json:"ip"`
		Port int    `json:"port"`
	}
	if err := json.Unmarshal(x.Body(), &m); err != nil || m.IP == "" {
		x.Scratch = append(appendResult(x.Scratch[:0], resultRefused, "Node information is illegal"), "null}"...)
		x.JSON(200, x.Scratch)
		return
	}
	data := `"false"}`
	if a.isMember(naming.Member{Host: m.IP, Port: m.Port}.Address()) {
		data = `"true"}`
	}
	x.Scratch = append(appendResult(x.Scratch[:0], resultOK, ""), data...)
	x.JSON(200, x.Scratch)
}

// noSuchOperation refuses an operation on the cluster that only Nacos has.
func (a *API) noSuchOperation(x *httpapi.Exchange) {
	x.Scratch = append(appendResult(x.Scratch[:0], resultRefused, "Rollcall has no such operation"), "null}"...)
	x.JSON(200, x.Scratch)
}

// idInfo answers GET /core/ops/idInfo: the generators of numbers for the database
// of Nacos, of which there are none.
func (a *API) idInfo(x *httpapi.Exchange) {
	x.Scratch = append(appendResult(x.Scratch[:0], resultOK, ""), "{}}"...)
	x.JSON(200, x.Scratch)
}

// setCoreLogLevel is setLogLevel with the answer of the core module.
func (a *API) setCoreLogLevel(x *httpapi.Exchange) {
	a.setLogLevel(x)
	if x.Status() == 200 {
		x.Text(200, "200")
	}
}
