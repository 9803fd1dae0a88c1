package cli

import (
	"errors"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/cli/logs"
	"github.com/rollcall-registry/rollcall/server"
)

// settings are all that an operator can set for `rollcall serve`.
type settings struct {
	Server server.Config
	Access accessConfig
	Log    logs.Config
	Debug  debugConfig
}

// accessConfig says who may reach the server and how.
type accessConfig struct {
	// Auth is on, off, or empty when the operator said nothing.
	Auth string `config:"auth" enum:"on,off" help:"Whether callers must log in. Listening on more than loopback needs it to be said." unset:"off on loopback"`
}

// debugConfig is for those who look into the process.
type debugConfig struct {
	PprofListen string `config:"pprof-listen" value:"host:port" help:"Loopback address on which profiles of the process are served." unset:"off"`
	Check       bool   `config:"check" bare:"true" help:"Check the settings and the data directory, and exit."`
}

func defaultSettings() settings {
	return settings{Server: server.DefaultConfig(), Log: logs.DefaultConfig()}
}

// Validate reports the faults of all parts.
func (s settings) Validate() error {
	return errors.Join(
		s.Server.Validate(),
		checkBind(s.Access.Auth, s.Server.Addresses()),
		checkPprof(s.Debug.PprofListen),
	)
}

func checkPprof(address string) error {
	if address != "" && !isLoopback(address) {
		return fmt.Errorf("pprof-listen: %q is not a loopback address; write one such as 127.0.0.1:6060", address)
	}
	return nil
}
