package legacy

import (
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// metrics answers counts, and how busy the machine is. This server answers for all
// services, and what waits to be told is the business of the pusher.
func (a *API) metrics(x *httpapi.Exchange) {
	counts := a.core.Store().Counts()
	cpu, load, memory := a.load()
	doms := strconv.FormatInt(counts.Services, 10)
	ips := strconv.FormatInt(counts.Ephemeral+counts.Persistent, 10)
	b := append(x.Scratch[:0], `{"domCount":`+doms+`,"ipCount":`+ips+
		`,"responsibleDomCount":`+doms+`,"responsibleIPCount":`+ips+`,"notifyTask":0,"cpu":`...)
	b = appendNumber(b, cpu, 32)
	b = append(b, `,"load":`...)
	b = appendNumber(b, load, 32)
	b = append(b, `,"mem":`...)
	b = appendNumber(b, memory, 32)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// unknownSite is the site of a server that was told none, and of every one here.
const unknownSite = "unknown"

// distroStatus answers the servers by their site. An action other than view does
// nothing: the one to clean up has nothing to do here.
func (a *API) distroStatus(x *httpapi.Exchange) {
	b := append(x.Scratch[:0], '{')
	if x.Params().Optional("action", "view") == "view" {
		b = append(b, `"status":{"`+unknownSite+`":[`...)
		for n, m := range a.members.Members() {
			if n > 0 {
				b = append(b, ',')
			}
			b = appendServer(b, m)
		}
		b = append(b, "]}"...)
	}
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

func appendServer(b []byte, m naming.Member) []byte {
	b = append(b, `{"ip":`...)
	b = registry.AppendJSONString(b, m.Address())
	b = append(b, `,"site":"`+unknownSite+`","alive":`...)
	b = strconv.AppendBool(b, m.State == naming.MemberUp)
	b = append(b, `,"weight":1,"adWeight":0,"lastRefTime":`...)
	b = strconv.AppendInt(b, m.Seen, 10)
	b = append(b, `,"lastRefTimeStr":`...)
	b = registry.AppendJSONString(b, time.UnixMilli(m.Seen).Format(time.DateTime))
	return append(b, '}')
}

// getHealthyServerList answers the addresses of the servers that are up.
func (a *API) getHealthyServerList(x *httpapi.Exchange) {
	healthy := []string{}
	for _, m := range a.members.Members() {
		if m.State == naming.MemberUp {
			healthy = append(healthy, m.Address())
		}
	}
	a.answerList(x, "healthyList", healthy)
}

func (a *API) answerList(x *httpapi.Exchange, name string, list []string) {
	b := append(x.Scratch[:0], `{"`+name+`":`...)
	x.Scratch = append(appendStrings(b, list), '}')
	x.JSON(200, x.Scratch)
}

// responsible answers whether this server watches over a service: it does so for
// all that it knows.
func (a *API) responsible(x *httpapi.Exchange) {
	if _, err := a.existingDom(x.Params(), "dom not found"); err != nil {
		a.fail(x, err)
		return
	}
	x.JSON(200, []byte(`{"responsible":true}`))
}

// getResponsibleServer4Dom answers which server watches over a service.
func (a *API) getResponsibleServer4Dom(x *httpapi.Exchange) {
	if _, err := a.existingDom(x.Params(), "dom not found"); err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"responsibleServer":`...)
	b = registry.AppendJSONString(b, a.members.Self().Address())
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// updateClusterConf lists the servers. It does not change the list: a server of
// this registry is no line in a file.
func (a *API) updateClusterConf(x *httpapi.Exchange) {
	action, err := x.Params().Required("action")
	if err != nil {
		a.fail(x, err)
		return
	}
	switch action {
	case "view":
		var list []string
		for _, m := range a.members.Members() {
			list = append(list, m.Address())
		}
		a.answerList(x, "list", list)
	case "add", "replace", "delete":
		a.fail(x, illegal("action is not qualified, action: %s; the members of Rollcall are not changed by this call", action))
	default:
		a.fail(x, illegal("action is not qualified, action: %s", action))
	}
}

// The release whose calls these are, as they tell it. The version of Rollcall is
// in its own API and on its command line.
const (
	version   = "0.9.0"
	changeLog = "answered by Rollcall; see its CHANGELOG.md"
)

// getVersion answers which release this API is that of.
func (a *API) getVersion(x *httpapi.Exchange) {
	x.JSON(200, []byte(`{"server version":"`+version+`","change log":"`+changeLog+`"}`))
}

// getAllChangeLog answers what changed in each release.
func (a *API) getAllChangeLog(x *httpapi.Exchange) {
	x.JSON(200, []byte(`{"`+version+`":"`+changeLog+`"}`))
}

// containerNotify takes note of what a container says of itself, and no more than
// that, as in 0.9.
func (a *API) containerNotify(x *httpapi.Exchange) {
	p := x.Params()
	values := make([]any, 0, 8)
	for _, name := range []string{"type", "domain", "ip", "port"} {
		value, err := p.Required(name)
		if err != nil {
			a.fail(x, err)
			return
		}
		values = append(values, name, httpapi.ErrorText(value))
	}
	a.log.Debug("container notify", values...)
	x.OK()
}

// peerOnly refuses the calls of 0.9 servers to each other.
func (a *API) peerOnly(x *httpapi.Exchange) {
	x.Text(403, "this call is one of Nacos servers to each other; Rollcall takes no part in it")
}
