package v1

import "github.com/rollcall-registry/rollcall/internal/httpapi"

// peerRoutes are the calls by which servers of 1.x speak with each other. Members
// of Rollcall do not: the answers are those that end such a conversation.
func (a *API) peerRoutes() []httpapi.Route {
	const distro = "/v1/ns/distro"
	routes := []httpapi.Route{
		httpapi.Get(distro+"/datum", httpapi.Open, a.peerOnly),
		httpapi.Change("PUT", distro+"/datum", httpapi.Open, a.peerOnly),
		httpapi.Change("PUT", distro+"/checksum", httpapi.Open, a.distroChecksum),
		httpapi.Get(distro+"/datums", httpapi.Open, a.distroSnapshot),
	}
	for _, r := range []struct{ method, path string }{
		{"POST", "/vote"},
		{"POST", "/beat"},
		{"GET", "/peer"},
		{"GET", "/state"},
		{"GET", "/leader"},
		{"GET", "/listeners"},
		{"PUT", "/datum/reload"},
		{"POST", "/datum/commit"},
		{"DELETE", "/datum/commit"},
		{"GET", "/datum"},
		{"POST", "/datum"},
		{"DELETE", "/datum"},
	} {
		route := httpapi.Change(r.method, "/v1/ns/raft"+r.path, httpapi.Open, a.oldRaft)
		if r.method == "GET" {
			route.Action = httpapi.Read
		}
		routes = append(routes, route)
	}
	return routes
}

// oldRaft answers the Raft calls of releases before 1.4, as 1.4.8 does once none
// of them is left.
func (a *API) oldRaft(x *httpapi.Exchange) { x.Caused(500, "old raft protocol already stop") }

// peerOnly refuses a call that is for members of a cluster of Nacos.
func (a *API) peerOnly(x *httpapi.Exchange) {
	x.Caused(500, "this server is no member of a Nacos cluster")
}

func (a *API) distroChecksum(x *httpapi.Exchange) {
	if _, err := x.Params().Bound("source"); err != nil {
		a.fail(x, err)
		return
	}
	a.peerOnly(x)
}

// distroSnapshot answers GET /distro/datums with nothing to copy.
func (a *API) distroSnapshot(x *httpapi.Exchange) { x.Answer(200, "application/octet-stream", nil) }
