package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rollcall-registry/rollcall/internal/cli/config"
	"github.com/rollcall-registry/rollcall/internal/cli/logs"
	"github.com/rollcall-registry/rollcall/server"
)

const serveHelp = `Run a registry server until SIGTERM or SIGINT.

Each setting has a flag, an environment variable and a key in the YAML file of
--config. A flag beats the variable, the variable beats the file, and the file
beats the default. SIGHUP reads the file again; docs/config.md tells which
settings a running server takes over, and it reads the certificate again.

When the server answers, one line on standard error begins with "ready" and
names its addresses. After SIGTERM it stops within 20 s with everything
flushed; a second signal ends it at once.`

// serve is one run of `rollcall serve`.
type serve struct {
	app    *app
	schema *config.Schema[settings]
	flags  *pflag.FlagSet
	file   *string // of the flag --config

	running settings // replaced by reload
	level   slog.LevelVar
	log     *slog.Logger
}

func (a *app) serveCommand() (*cobra.Command, error) {
	schema, err := config.New(defaultSettings())
	if err != nil {
		return nil, err
	}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run a registry server",
		Long:    serveHelp,
		GroupID: serverGroup,
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false // the order of the settings has a meaning
	s := &serve{app: a, schema: schema, flags: flags}
	s.file = flags.String("config", "", "YAML `file` of settings.\nenv ROLLCALL_CONFIG, no key, default none")
	schema.AddFlags(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context()) }
	return cmd, s.completions(cmd)
}

// completions tells the shell what values flags take.
func (s *serve) completions(cmd *cobra.Command) error {
	for _, n := range s.schema.Settings() {
		if len(n.Words) == 0 {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(n.Flag, cobra.FixedCompletions(n.Words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			return err
		}
	}
	if err := cmd.MarkFlagDirname("data-dir"); err != nil {
		return err
	}
	return cmd.MarkFlagFilename("config", "yaml", "yml")
}

// load reads the settings from all sources.
func (s *serve) load() (config.Loaded[settings], error) {
	loaded, err := s.schema.Load(config.Sources{
		Flags:   s.flags,
		Environ: s.app.process.Environ,
		File:    cmp.Or(*s.file, s.app.lookupEnv("ROLLCALL_CONFIG")),
	})
	loaded.UnknownEnv = slices.DeleteFunc(loaded.UnknownEnv, func(name string) bool {
		return name == "ROLLCALL_CONFIG" || slices.Contains(clientVariables(), name)
	})
	return loaded, err
}

func (s *serve) run(ctx context.Context) error {
	loaded, err := s.load()
	if err != nil {
		return &usageError{err}
	}
	s.running = loaded.Config
	s.log = logs.New(s.app.process.Stderr, s.running.Log.Format, &s.level)
	if err := s.setLevel(); err != nil {
		return &usageError{err}
	}
	if len(loaded.UnknownEnv) > 0 {
		s.log.Warn("environment variables are no settings", "names", loaded.UnknownEnv)
	}
	if s.running.Debug.Check {
		return s.check()
	}
	s.limitMemory()
	stopPprof, err := s.pprof()
	if err != nil {
		return err
	}
	defer stopPprof()
	srv, err := server.New(s.running.Server, s.log, server.WithLevel(&s.level))
	if err != nil {
		return err
	}
	defer s.startGCTuning(ctx, srv.Ready())()
	supervised := supervision{
		run:     srv.Run,
		ready:   srv.Ready(),
		onReady: func() { s.announce(srv.Addrs()) },
		reload:  func() { s.reload(srv) },
		signals: s.app.process.Signals,
	}
	return supervised.wait(ctx)
}

func (s *serve) setLevel() error {
	level, err := logs.ParseLevel(s.running.Log.Level)
	if err != nil {
		return err
	}
	s.level.Set(level)
	return nil
}

// check tells whether a server with these settings could start. The settings
// have been validated.
func (s *serve) check() error {
	found, err := server.Check(s.running.Server)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.app.process.Stdout, "the settings are valid; %s\n", found)
	return err
}

// limitMemory makes the garbage collector respect the limit of the container.
// GOMEMLIMIT in the environment wins.
func (s *serve) limitMemory() {
	switch limit, err := memlimit.Set(); {
	case err != nil:
		s.log.Debug("the container's memory limit is unknown", "err", err)
	case limit != math.MaxInt64:
		s.log.Info("memory limit set", "bytes", limit)
	}
}

// startGCTuning adapts the garbage collector once the server is ready, unless GOGC
// is in the environment. It returns the function that ends it and waits.
func (s *serve) startGCTuning(ctx context.Context, ready <-chan struct{}) (stop func()) {
	if s.app.lookupEnv("GOGC") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var tuning sync.WaitGroup
	tuning.Go(func() { tuneGC(ctx, ready) })
	return func() { cancel(); tuning.Wait() }
}

// pprof starts the listener of profiles if there is to be one, and returns the
// function that ends it.
func (s *serve) pprof() (stop func(), err error) {
	address := s.running.Debug.PprofListen
	if address == "" {
		return func() {}, nil
	}
	addr, end, err := startPprof(address)
	if err != nil {
		return nil, err
	}
	s.log.Info("profiles are served", "url", "http://"+addr.String()+"/debug/pprof/")
	return func() {
		if err := end(); err != nil {
			s.log.Warn("the listener of profiles ended badly", "err", err)
		}
	}, nil
}

// announce writes the ready line, whatever the log level.
func (s *serve) announce(addrs server.Addrs) {
	var clients []string
	for _, addr := range addrs.HTTP {
		clients = append(clients, addr.String())
	}
	grpc := "off"
	if addrs.GRPC != nil {
		grpc = addrs.GRPC.String()
	}
	auth := cmp.Or(s.running.Access.Auth, "off")
	dir := s.running.Server.DataDir
	schemes := s.schemes()
	if s.running.Log.Format == "json" {
		var attrs []any
		for _, scheme := range schemes {
			attrs = append(attrs, scheme, clients)
		}
		attrs = append(attrs, "grpc", grpc, "udp", addrs.UDP.String(), "auth", auth, "data_dir", dir)
		logs.Unlimited(s.app.process.Stderr, "json").Info("ready", attrs...)
		return
	}
	line := "ready"
	for _, scheme := range schemes {
		line += " " + scheme + "=" + strings.Join(clients, ",")
	}
	fmt.Fprintf(s.app.process.Stderr, "%s grpc=%s udp=%s auth=%s data-dir=%q\n", line, grpc, addrs.UDP, auth, dir)
}

// schemes are those of the URLs by which clients reach the server.
func (s *serve) schemes() (schemes []string) {
	if s.running.Server.TLS.ClearText() {
		schemes = append(schemes, "http")
	}
	if s.running.Server.TLS.Enabled() {
		schemes = append(schemes, "https")
	}
	return schemes
}

// reload reads the settings again and takes over those that can change while
// the server runs. With a fault in any of them everything stays as it is.
func (s *serve) reload(srv *server.Server) {
	loaded, err := s.load()
	if err != nil {
		s.log.Error("settings not reloaded", "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	next, changed, restart := s.schema.Adopt(s.running, loaded.Config)
	s.running = next
	if err := s.setLevel(); err != nil {
		s.log.Error("settings not reloaded", "err", err)
		return
	}
	srv.Reload(s.running.Server)
	s.log.Info("settings reloaded", "changed", changed)
	if len(restart) > 0 {
		s.log.Warn("settings changed that need a restart", "keys", restart)
	}
}
