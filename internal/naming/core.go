package naming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Config bounds what clients may store. The zero value of a limit means none.
type Config struct {
	MetadataLimit int `config:"limits.metadata" help:"largest number of characters in keys and values of one instance's metadata"`
	ServiceLimit  int `config:"limits.services" help:"largest number of services in one namespace; 0 means no limit"`
	InstanceLimit int `config:"limits.instances" help:"largest number of instances on this server; 0 means no limit"`
	// A subscription costs its client's own texts and a place in the lists, 300 bytes
	// to some kilobytes.
	SubscriptionLimit int `config:"limits.subscriptions" help:"largest number of subscriptions on this server, each of one client to one service; 0 means no limit"`
}

// DefaultConfig returns the limits of a server that was told nothing: 64 KiB of
// metadata, because Dubbo and its kin need far more than the 1,024 of Nacos, and more
// subscriptions than ten thousand clients of a hundred services have.
func DefaultConfig() Config { return Config{MetadataLimit: 64 << 10, SubscriptionLimit: 1_000_000} }

// Clock reads the time of a command. health.Clock is the one of a server.
type Clock interface {
	Now() registry.Instant
}

// Log makes commands durable.
type Log interface {
	// Propose returns when the command is on stable storage and applied, with
	// what applying it returned. It fails when the disk does, when the log is
	// closed, or when ctx ends first; the command may then still come through.
	Propose(ctx context.Context, c registry.Command) (registry.Result, error)
}

// Core is the naming API of one server.
type Core struct {
	cfg   Config
	store *registry.Store
	log   Log
	clock Clock
	slog  *slog.Logger

	warned atomic.Int64 // when the log last told of refused subscriptions, by the lease clock; 0: never
}

// New returns a core over store. Durable changes go through log.
func New(cfg Config, store *registry.Store, log Log, clock Clock, logger *slog.Logger) *Core {
	return &Core{cfg: cfg, store: store, log: log, clock: clock, slog: logger.With("component", "naming")}
}

// Now returns the present time.
func (c *Core) Now() registry.Instant { return c.clock.Now() }

// Store gives read access to the state. Changes go through the methods of Core.
func (c *Core) Store() Reader { return c.store }

// Reader is the part of the store that front-ends may read. It is an interface so
// that none of them can apply a command past the rules of [Core].
type Reader interface {
	View(registry.ServiceKey) *registry.View
	Services(namespace, group string, offset, limit int) (page []registry.ServiceKey, total int)
	ServiceNamespaces() []string
	Namespaces() []registry.Namespace
	NamespaceByID(id string) (registry.Namespace, bool)
	Switches() *registry.Switches
	CheckSwitch(entry, value string) error
	Subscribers(registry.ServiceKey) []*registry.Subscriber
	Subscriber(registry.ServiceKey, registry.SubscriberKey) *registry.Subscriber
	CountSubscribers(registry.ServiceKey) int
	FindSubscribers(match func(registry.ServiceKey) bool) []*registry.Subscriber
	Standings(registry.ServiceKey, registry.Instant) []registry.Standing
	EachHolding(visit func(registry.Holding))
	Recalled(registry.ClientID) bool
	ClientHoldings(registry.ClientID) map[registry.ServiceKey][]registry.InstanceKey
	Override(registry.ServiceKey, registry.InstanceKey) (registry.Override, bool)
	HasOwner(registry.ServiceKey, registry.InstanceKey, registry.OwnerKind) bool
	Held(registry.ServiceKey) bool
	Counts() registry.Counts
}

var _ Reader = (*registry.Store)(nil)

// limits bound the metadata of an instance, of a service and of a cluster alike.
func (c *Core) limits() registry.Limits { return registry.Limits{Metadata: c.cfg.MetadataLimit} }

// meta stamps a command.
func (c *Core) meta(cause registry.Cause) registry.Meta {
	return registry.Meta{At: c.clock.Now(), Cause: cause}
}

// propose sends a durable command through the log.
func (c *Core) propose(ctx context.Context, cmd registry.Command) error {
	// A refused command would stay in the log, and a replay judges it without the
	// ephemeral instances.
	if err := c.store.Check(cmd); err != nil {
		return err
	}
	_, err := c.log.Propose(ctx, cmd)
	return err
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		key string
		n   int
	}{{"limits.metadata", c.MetadataLimit}, {"limits.services", c.ServiceLimit}, {"limits.instances", c.InstanceLimit}, {"limits.subscriptions", c.SubscriptionLimit}} {
		if l.n < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is negative", l.key, l.n))
		}
	}
	return errors.Join(errs...)
}
