package modern

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// SetSwitch sets a switch. As in the original one that does not exist is answered
// ok.
func (a *API) SetSwitch(x *httpapi.Exchange) {
	f := result.NewForm(x, "updateSwitchForm")
	debug := f.Bool("debug", result.JavaPlainBool, false)
	entry, value := f.Need("entry"), f.Need("value")
	err := f.Err()
	if err == nil {
		err = a.Core.SetSwitch(x.Context(), a.Cause(x, "set switch"), entry, value, debug)
	}
	if IsRefusal(err, registry.UnknownSwitch) {
		err = nil
	}
	a.Done(x, err)
}

// SetLogLevel sets what a logger writes. A logger or a level that does not exist
// changes nothing and is no error, as in the original.
func (a *API) SetLogLevel(name, level string) {
	if to, ok := values.ParseLevel(level); ok && a.Levels != nil {
		a.Levels.SetLevel(name, to)
	}
}

// Metrics answers the status of the server, or when the request wants them its
// counts too, to which more appends what one generation adds.
func (a *API) Metrics(x *httpapi.Exchange, more func([]byte) []byte) {
	f := result.NewParams(x)
	onlyStatus := f.Bool("onlyStatus", result.JavaBoolean, true)
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	b := append(result.Begin(x.Scratch[:0]), `{"status":`...)
	b = registry.AppendJSONString(b, a.Core.Store().Switches().Status())
	if !onlyStatus {
		b = more(a.appendCounts(b))
	}
	a.Data(x, append(b, '}'))
}

func (a *API) appendCounts(b []byte) []byte {
	counts, addresses := a.Core.Store().Counts(), a.Core.CountAddressClients()
	connections := len(a.Connections.Connections())
	clients := connections + addresses.Ephemeral + addresses.Persistent
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"serviceCount", counts.Services},
		{"instanceCount", counts.Ephemeral + counts.Persistent},
		{"subscribeCount", counts.Subscribers},
		{"clientCount", int64(clients)},
		{"connectionBasedClientCount", int64(connections)},
		{"ephemeralIpPortClientCount", int64(addresses.Ephemeral)},
		{"persistentIpPortClientCount", int64(addresses.Persistent)},
		{"responsibleClientCount", int64(clients)}, // this server answers for all
	} {
		b = append(append(append(b, `,"`...), c.name...), `":`...)
		b = strconv.AppendInt(b, c.n, 10)
	}
	return b
}
