package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/grpcapi"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/h2"
	"github.com/rollcall-registry/rollcall/internal/health"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/push"
	"github.com/rollcall-registry/rollcall/internal/recovery"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/udppush"
)

// Config is the configuration of one server: one struct per part. Start from
// [DefaultConfig].
type Config struct {
	Listen []string `config:"listen" value:"host:port" help:"Address for clients: HTTP/1.1, gRPC and UDP subscriptions. Port 0 takes a free port, which the ready line names."`
	// GRPCListen is host:port, "off", or empty for the default.
	GRPCListen string `config:"grpc-listen" value:"host:port|off" help:"Extra address for gRPC alone, which SDKs of 2.x and 3.x compute by adding 1000 to the port that they are given. gRPC is served on every --listen address, too." unset:"the first --listen address, its port plus 1000"`
	DataDir    string `config:"data-dir" value:"directory" help:"Where durable data, the history and the memory of ephemeral instances are kept. It is made when it is not there; one server at a time may use it."`
	CacheBytes int    `config:"cache" unit:"bytes" help:"How much memory encoded instance lists may take, shared by look-ups and pushes."`

	TLS      TLSConfig `help:"TLS for HTTP and gRPC. Connections, their limits and PROXY headers are as in clear text."`
	UDP      udppush.Config
	HTTP     httpapi.Config `help:"HTTP connections."`
	GRPC     grpcapi.Config `help:"gRPC connections."`
	GRPCConn h2.Config
	Push     push.Config     `help:"How changes reach subscribers."`
	Expiry   registry.Config `help:"What happens to instances whose clients fall silent."`
	Health   health.Config   `help:"Probes of persistent instances, and pauses of the server itself."`
	Limits   naming.Config   `help:"What clients may store."`
	History  ledger.Config   `help:"The history of changes."`

	RecordPushes bool `config:"history.pushes" help:"Whether the history keeps when each subscriber acknowledged each change, in files of its own that take up to a quarter of history.total besides."`

	Recovery recovery.Config `help:"How ephemeral instances are remembered across a restart."`
}

// DefaultConfig returns the settings of a server that was told nothing: on
// loopback, with its data in the folder rollcall-data.
func DefaultConfig() Config {
	return Config{
		Listen:     []string{"127.0.0.1:8848"},
		DataDir:    "rollcall-data",
		CacheBytes: naming.DefaultEncoderBudget,
		TLS:        defaultTLSConfig(),
		UDP:        udppush.DefaultConfig(),
		HTTP:       httpapi.DefaultConfig(),
		GRPC:       grpcapi.DefaultConfig(),
		GRPCConn:   h2.DefaultConfig(),
		Push:       push.DefaultConfig(),
		Expiry:     registry.DefaultConfig(),
		Health:     health.DefaultConfig(),
		Limits:     naming.DefaultConfig(),
		History:    ledger.DefaultConfig(""),

		RecordPushes: true,

		Recovery: recovery.DefaultConfig(),
	}
}

// Addresses returns every address that the operator named for clients.
func (c Config) Addresses() []string {
	if c.GRPCListen == "" || c.GRPCListen == grpcOff {
		return c.Listen
	}
	return append(slices.Clone(c.Listen), c.GRPCListen)
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if len(c.Listen) == 0 {
		errs = append(errs, errors.New("listen: no address is given"))
	}
	for _, address := range c.Listen {
		if !isAddress(address) {
			errs = append(errs, fmt.Errorf("listen: %q is no host:port; ports are numbers from 0 to %d", address, maxPort))
		}
	}
	if c.GRPCListen != "" && c.GRPCListen != grpcOff {
		if !isAddress(c.GRPCListen) {
			errs = append(errs, fmt.Errorf("grpc-listen: %q is neither host:port nor %s; ports are numbers from 0 to %d", c.GRPCListen, grpcOff, maxPort))
		}
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("data-dir: no directory is given"))
	}
	if c.CacheBytes < 0 {
		errs = append(errs, fmt.Errorf("cache: %d is negative", c.CacheBytes))
	}
	return errors.Join(append(errs,
		c.TLS.Validate(), c.UDP.Validate(), c.HTTP.Validate(), c.GRPC.Validate(), c.GRPCConn.Validate(), c.Push.Validate(), c.Expiry.Validate(), c.Health.Validate(),
		c.Limits.Validate(), c.History.Validate(), c.Recovery.Validate())...)
}

// isAddress reports whether text is host:port with a number for a port.
func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
