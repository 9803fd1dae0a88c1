package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// protocols are what --via takes.
var protocols = map[string]rollcall.Protocol{"": rollcall.Auto, "auto": rollcall.Auto, "grpc": rollcall.GRPC, "http": rollcall.HTTP}

// via reads that setting.
func (s *clientSettings) via() (rollcall.Protocol, error) {
	text := s.get(flagVia)
	p, ok := protocols[text]
	if !ok {
		return p, fmt.Errorf("%s: %q is no protocol; write auto, grpc or http", flagVia, text)
	}
	return p, nil
}

// sdkCommand completes cmd, a command that asks by way of the SDK, and therefore any
// server that speaks a protocol of Nacos. via is the protocol unless told otherwise.
func (a *app) sdkCommand(cmd *cobra.Command, via string, run func(ctx context.Context, c *client, args []string) error) *cobra.Command {
	cmd.Flags().String(flagVia, via, "The `protocol` to ask by: auto, grpc or http.\nenv "+settingVariables[flagVia])
	a.clientCommand(cmd, run)
	_ = cmd.RegisterFlagCompletionFunc(flagVia, // the flag is there, so there is no error
		cobra.FixedCompletions([]cobra.Completion{"auto", "grpc", "http"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// withSDK calls f with a client of the SDK that is connected to the first server that
// can be reached, for a command that asks once.
func (c *client) withSDK(ctx context.Context, f func(sdk *rollcall.Client) error) error {
	var failures []error
	for _, server := range c.servers {
		sdk, err := c.connect(ctx, c.via, server)
		if err == nil {
			c.prefer(server)
			return errors.Join(c.worded(ctx, f(sdk)), sdk.Close())
		}
		if misuse := (*usageError)(nil); ctx.Err() != nil || errors.As(err, &misuse) {
			return err
		}
		failures = append(failures, err)
	}
	return together(failures)
}

// withLastingSDK calls f with a client of the SDK that is connected to one of the
// servers, and moves to another one when that goes.
func (c *client) withLastingSDK(ctx context.Context, f func(sdk *rollcall.Client) error) error {
	sdk, err := c.connect(ctx, c.via, c.servers...)
	if err != nil {
		return err
	}
	return errors.Join(c.worded(ctx, f(sdk)), sdk.Close())
}

// connect returns a client of the SDK that is connected. The caller closes it.
func (c *client) connect(ctx context.Context, via rollcall.Protocol, servers ...*url.URL) (*rollcall.Client, error) {
	sdk, err := rollcall.New(c.options(via, servers)...)
	if err != nil {
		return nil, &usageError{err}
	}
	if err := c.reach(ctx, sdk, via, servers); err != nil {
		_ = sdk.Close() // it is the lesser fault
		return nil, err
	}
	return sdk, nil
}

// options are those of the SDK. All servers have the scheme and the path of the first.
func (c *client) options(via rollcall.Protocol, servers []*url.URL) []rollcall.Option {
	var entries []string
	for _, server := range servers {
		entries = append(entries, server.Scheme+"://"+server.Host)
	}
	options := []rollcall.Option{
		rollcall.WithServers(entries...),
		rollcall.WithContextPath(servers[0].Path + nacosPath),
		rollcall.WithProtocol(via), rollcall.WithNamespace(c.namespace), rollcall.WithAppName("rollcall-cli"),
		rollcall.WithTimeout(c.attempt),
	}
	if servers[0].Scheme == "https" {
		options = append(options, rollcall.WithTLS(c.trust))
	}
	if c.login != nil {
		options = append(options, rollcall.WithUserPassword(c.login.user, c.login.password))
	}
	return options
}

// reach waits until the SDK is connected. The SDK would try for ever; a command gives up
// when an attempt has failed at each server.
func (c *client) reach(ctx context.Context, sdk *rollcall.Client, via rollcall.Protocol, servers []*url.URL) error {
	asked, cancel := c.asked(ctx)
	defer cancel()
	last, looked := rollcall.Status{}, false
	for last = range sdk.StatusChanges(asked) {
		switch {
		case last.State == rollcall.Connected:
			return nil
		case last.LastError == nil, looked:
		case via != rollcall.Auto && len(servers) == 1:
			return c.apart(ctx, servers[0], last.LastError)
		default:
			looked = true
			if err := c.look(asked, via, servers); err != nil {
				return err
			}
		}
	}
	return c.apart(ctx, servers[0], cmp.Or(last.LastError, context.Cause(asked)))
}

// look tries each server for itself, and returns the reason of each if none can be
// reached. Instead of both protocols HTTP is tried: gRPC has failed.
func (c *client) look(ctx context.Context, via rollcall.Protocol, servers []*url.URL) error {
	if via == rollcall.Auto {
		via = rollcall.HTTP
	}
	var failures []error
	for _, server := range servers {
		sdk, err := c.connect(ctx, via, server)
		if err == nil {
			return sdk.Close()
		}
		failures = append(failures, err)
	}
	return together(failures)
}

// asked bounds what asks once, by attempts over gRPC and HTTP that are bounded each.
func (c *client) asked(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(answerTime, 3*c.attempt))
}

// apart words why a server cannot be reached by way of the SDK.
func (c *client) apart(ctx context.Context, server *url.URL, err error) error {
	failed, ok := errors.AsType[*rollcall.OpError](err)
	if ok && failed.Server != "" && failed.Server != server.Host && ctx.Err() == nil && errors.Is(err, rollcall.ErrNotConnected) {
		return fmt.Errorf("%s does not answer over gRPC, at %s (%w); see --%s", server, failed.Server, failed.Err, flagVia)
	}
	refused, answered := errors.AsType[*rollcall.ServerError](err)
	switch {
	case errors.Is(err, rollcall.ErrNotConnected):
		return c.unreachable(ctx, server, err)
	case answered && refused.HTTPStatus == http.StatusNotFound, errors.Is(err, rollcall.ErrUnsupported):
		return fmt.Errorf("%s speaks no protocol of Nacos (%w)", server, err)
	default:
		return c.worded(ctx, err)
	}
}

// worded words an error of the SDK for an operator.
func (c *client) worded(ctx context.Context, err error) error {
	refused := (*rollcall.ServerError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, rollcall.ErrUnauthorized), errors.Is(err, rollcall.ErrForbidden):
		return fmt.Errorf("%w; log in with --%s and --%s", err, flagUser, flagPassword)
	case errors.Is(err, rollcall.ErrNotConnected):
		return c.unreachable(ctx, c.server(), err)
	case errors.Is(err, rollcall.ErrInvalidArgument) && !errors.As(err, &refused):
		return &usageError{err}
	default:
		return err
	}
}

// sdk is a service as the SDK names it.
func (s serviceName) sdk(namespace string) rollcall.Service {
	return rollcall.Service{Namespace: namespace, Group: s.group, Name: s.name}
}

// fullName is the name by which the commands know a service of the SDK.
func fullName(s rollcall.Service) string {
	return serviceName{cmp.Or(s.Group, defaultGroup), s.Name}.String()
}
