package modern

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// raftPortOffset is what the original takes off the HTTP port for its Raft.
const raftPortOffset = 1000

// Member returns how a member is shown by a generation that answers as a release of
// Nacos. Consoles and clients compare the version with what they need, so it is
// what they are told.
func Member(version string) func([]byte, naming.Member) []byte {
	return func(b []byte, m naming.Member) []byte {
		b = append(b, `{"ip":`...)
		b = registry.AppendJSONString(b, m.Host)
		b = append(b, `,"port":`...)
		b = strconv.AppendInt(b, int64(m.Port), 10)
		b = append(b, `,"state":`...)
		b = registry.AppendJSONString(b, m.State)
		b = append(b, `,"extendInfo":{"lastRefreshTime":`...)
		b = strconv.AppendInt(b, m.Seen, 10)
		b = append(b, `,"raftPort":"`...)
		b = strconv.AppendInt(b, int64(m.Port-raftPortOffset), 10)
		b = append(b, `","readyToUpgrade":true,"supportGrayModel":true,"version":`...)
		b = registry.AppendJSONString(b, version)
		b = append(b, `},"address":`...)
		b = registry.AppendJSONString(b, m.Address())
		b = append(b, `,"failAccessCnt":`...)
		b = strconv.AppendInt(b, int64(m.Failures), 10)
		return append(b, `,"abilities":{"remoteAbility":{"supportRemoteConnection":true,"grpcReportEnabled":true},`+
			`"configAbility":{"supportRemoteMetrics":false},"namingAbility":{"supportJraft":true}},"grpcReportEnabled":true}`...)
	}
}

// Self answers this server.
func (a *API) Self(version string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		a.Data(x, Member(version)(result.Begin(x.Scratch[:0]), a.Members.Self()))
	}
}

// MemberList answers the members whose address begins with the one that is asked
// for, of the state that is asked for.
func (a *API) MemberList(version string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		f := result.NewParams(x)
		address, word := f.Text("address", ""), f.Text("state", "")
		state := strings.ToUpper(word)
		if word != "" && !slices.Contains(memberStates, state) {
			a.Fail(x, &result.Fault{Status: 400, Code: result.IllegalState, Data: "Illegal state: " + word})
			return
		}
		a.AnswerMembers(x, version, func(m naming.Member) bool {
			return strings.HasPrefix(m.Address(), address) && (state == "" || m.State == state)
		})
	}
}

// memberStates are the states of Nacos' members.
var memberStates = []string{"STARTING", "UP", "SUSPICIOUS", "DOWN", "ISOLATION"}

// AnswerMembers answers the members for which match is true.
func (a *API) AnswerMembers(x *httpapi.Exchange, version string, match func(naming.Member) bool) {
	var list []naming.Member
	for _, m := range a.Members.Members() {
		if match(m) {
			list = append(list, m)
		}
	}
	a.Data(x, AppendArray(result.Begin(x.Scratch[:0]), list, Member(version)))
}

// NoSuchOperation refuses an operation on the cluster that only Nacos has.
func (a *API) NoSuchOperation(x *httpapi.Exchange) {
	a.Fail(x, &result.Fault{Status: 501, Code: result.ServerError, Data: "Rollcall has no such operation"})
}
