package v1

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Members are the servers that hold this registry together.
type Members interface {
	// Self returns this server.
	Self() naming.Member
	// Members returns all of them, this one too, sorted by address.
	Members() []naming.Member
}

// Version is the release of Nacos that the calls of this package answer as.
// Consoles and clients compare it with what they need, so it is what they are
// told; the version of Rollcall is in its own API and on its command line.
const Version = "1.4.8"

// raftPortOffset is what 1.x takes off the HTTP port for its Raft.
const raftPortOffset = 1000

// appendMember appends a member as JSON.
func appendMember(b []byte, m naming.Member) []byte {
	b = append(b, `{"ip":`...)
	b = registry.AppendJSONString(b, m.Host)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(m.Port), 10)
	b = append(b, `,"state":`...)
	b = registry.AppendJSONString(b, m.State)
	b = append(b, `,"extendInfo":{"lastRefreshTime":`...)
	b = strconv.AppendInt(b, m.Seen, 10)
	b = append(b, `,"raftPort":"`...)
	b = strconv.AppendInt(b, int64(max(m.Port-raftPortOffset, 0)), 10)
	b = append(b, `","version":"`+Version+`"},"address":`...)
	b = registry.AppendJSONString(b, m.Address())
	b = append(b, `,"failAccessCnt":`...)
	b = strconv.AppendInt(b, int64(m.Failures), 10)
	return append(b, '}')
}

func appendMembers(b []byte, list []naming.Member) []byte {
	b = append(b, '[')
	for n, m := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendMember(b, m)
	}
	return append(b, ']')
}

// isMember reports whether there is a member at an address.
func (a *API) isMember(address string) bool {
	return slices.ContainsFunc(a.members.Members(), func(m naming.Member) bool { return m.Address() == address })
}

// responsibleServer answers GET /operator/distro/server: who answers for the
// beats of a service. Here every member does.
func (a *API) responsibleServer(x *httpapi.Exchange) {
	key, err := boundService(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	if a.core.Store().View(key) == nil {
		a.failAs(x, registry.ServiceNotFound, 400,
			registry.Refuse(registry.ServiceNotFound, "serviceName", shown(key), "service not found"))
		return
	}
	b := append(x.Scratch[:0], `{"responsibleServer":`...)
	b = registry.AppendJSONString(b, a.members.Self().Address())
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// distroStatus answers GET /operator/distro/status.
func (a *API) distroStatus(x *httpapi.Exchange) {
	b := append(x.Scratch[:0], '{')
	if x.Params().BoundOptional("action", "view") == "view" {
		b = append(b, `"status":`...)
		b = appendMembers(b, a.members.Members())
	}
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// servers answers GET /operator/servers: the members, or those that are up.
func (a *API) servers(x *httpapi.Exchange) {
	healthy, err := x.Params().BoundBool("healthy", false)
	if err != nil {
		a.fail(x, err)
		return
	}
	list := a.members.Members()
	if healthy {
		list = slices.DeleteFunc(list, func(m naming.Member) bool { return m.State != naming.MemberUp })
	}
	b := append(x.Scratch[:0], `{"servers":`...)
	b = appendMembers(b, list)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// clusterState answers GET /operator/cluster/state, which is about the Raft of
// releases before 1.4. It does not run, which 1.4.8 shows as a follower without a
// term (live 1.4.8).
func (a *API) clusterState(x *httpapi.Exchange) {
	b := append(x.Scratch[:0], `{"ip":`...)
	b = registry.AppendJSONString(b, a.members.Self().Address())
	x.Scratch = append(b, `,"term":-1,"leaderDueMs":0,"heartbeatDueMs":0,"state":"FOLLOWER"}`...)
	x.JSON(200, x.Scratch)
}

// serverStatus answers GET /operator/server/status, by which members of old told
// of each other: lines of site#ip:port#time#weight. A line that is malformed is
// left out, and one of a server that is no member is refused.
func (a *API) serverStatus(x *httpapi.Exchange) {
	text, err := x.Params().Bound("serverStatus")
	if err != nil {
		a.fail(x, err)
		return
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		fields := strings.Split(line, "#")
		if len(fields) < 4 {
			continue
		}
		if !a.isMember(fields[1]) {
			a.fail(x, registry.Refuse(registry.InvalidArgument, "serverStatus", fields[1], "server: %s is not in serverlist", fields[1]))
			return
		}
	}
	x.OK()
}
