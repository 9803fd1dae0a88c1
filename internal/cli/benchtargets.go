package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rollcall-registry/rollcall/internal/bench/process"
	benchreport "github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// What is said of a server that is measured, as flags and after --against, beside the
// settings of all commands.
const (
	optionGRPC     = "grpc"
	optionPID      = "pid"
	optionInsecure = "insecure"
)

// againstSettings are the settings that may follow the address of --against.
func againstSettings() []string {
	return []string{flagUser, flagPassword, flagCA, flagCert, flagKey, flagName}
}

// benchServer is what the command line says of one server.
type benchServer struct {
	name, http, grpc string // addresses or URLs
	pid              int
	insecure         bool
	access           *clientSettings // login and TLS
}

// targets are the server and those beside it.
func (b *benchCommand) targets() ([]*target.Target, error) {
	// The file of settings is not read: it is of a registry in use, whose password is
	// not for whatever server is measured.
	access := &clientSettings{flags: b.flags, env: b.app.lookupEnv}
	t, err := b.target(&benchServer{
		name: b.name, http: cmp.Or(access.get(flagServer), defaultServer), grpc: b.grpc,
		pid: b.pid, insecure: b.insecure, access: access,
	})
	if err != nil {
		return nil, err
	}
	list := []*target.Target{t}
	for _, text := range b.against {
		t, err := b.other(text)
		if err != nil {
			return nil, fmt.Errorf("against: %q: %w", text, err)
		}
		if slices.ContainsFunc(list, func(have *target.Target) bool { return have.Name == t.Name }) {
			return nil, fmt.Errorf("against: %q: the name is taken; see --name", text)
		}
		list = append(list, t)
	}
	return list, nil
}

// other reads NAME=host:port,grpc=host:port,pid=N and so on. Nothing of what is said
// of the first server holds for it.
func (b *benchCommand) other(text string) (*target.Target, error) {
	name, rest, ok := strings.Cut(text, "=")
	address, options, _ := strings.Cut(rest, ",")
	if !ok || name == "" || address == "" {
		return nil, errors.New("write NAME=host:port")
	}
	s := &benchServer{name: name, http: address}
	access := pflag.NewFlagSet("against", pflag.ContinueOnError)
	addAccessFlags(access)
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch {
		case option == "":
		case key == optionGRPC:
			s.grpc = value
		case key == optionPID:
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("pid: %q is no number", value)
			}
			s.pid = n
		case option == optionInsecure:
			s.insecure = true
		case slices.Contains(againstSettings(), key):
			if err := access.Set(key, value); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%q is none of grpc, pid, insecure, %s", key, strings.Join(againstSettings(), ", "))
		}
	}
	s.access = &clientSettings{flags: access, env: func(string) string { return "" }}
	return b.target(s)
}

func (b *benchCommand) target(s *benchServer) (*target.Target, error) {
	server, err := serverURL(s.http)
	if err != nil {
		return nil, err
	}
	if path := strings.TrimSuffix(server.Path, "/"); path != "" {
		return nil, fmt.Errorf("server: %q: write it without %s; only servers under /nacos can be measured", s.http, path)
	}
	options, grpc, err := s.options(server)
	if err != nil {
		return nil, err
	}
	t, err := target.New(s.name, server.Host, grpc, options...)
	if err != nil {
		return nil, err
	}
	if remote := t.Remote(); remote != "" && !b.allowRemote {
		return nil, fmt.Errorf("%s is not of this machine: say --allow-remote if you may load it", remote)
	}
	t.PID = s.pid
	_, err = t.Process()
	return t, err
}

// options are how to reach a server, with the gRPC address as host:port, which may be
// empty. Over gRPC there is TLS if there is over HTTP, unless its address says which.
func (s *benchServer) options(server *url.URL) (options []target.Option, grpc string, err error) {
	trust, err := s.access.trust()
	if err != nil {
		return nil, "", err
	}
	trust.InsecureSkipVerify = s.insecure
	overGRPC := server.Scheme
	grpc = s.grpc
	if scheme, address, ok := strings.Cut(grpc, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return nil, "", fmt.Errorf("grpc: %q: write host:port, or http:// or https:// before it", grpc)
		}
		overGRPC, grpc = scheme, address
	}
	secure := func(scheme string) *tls.Config {
		if scheme == "https" {
			return trust
		}
		return nil
	}
	options = append(options, target.WithTLS(secure(server.Scheme), secure(overGRPC)))
	who, err := s.access.login()
	if err != nil {
		return nil, "", err
	}
	if who != nil {
		options = append(options, target.WithLogin(who.user, who.password))
	}
	return options, grpc, nil
}

// describe says what a server is, as far as that can be seen.
func describe(ctx context.Context, t *target.Target) benchreport.Server {
	s := benchreport.Server{Name: t.Name, Version: t.Version(ctx)}
	s.HTTP, s.GRPC = t.URLs()
	if pid, err := t.Process(); err == nil && pid != 0 {
		s.Program = process.Program(pid)
	}
	return s
}
