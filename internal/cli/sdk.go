package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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
// server that speaks a protocol of Nacos.
func (a *app) sdkCommand(cmd *cobra.Command, via string, run func(ctx context.Context, c *client, sdk *rollcall.Client, args []string) error) *cobra.Command {
	cmd.Flags().String(flagVia, via, "The `protocol` to ask by: auto, grpc or http.\nenv "+settingVariables[flagVia])
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		return c.withSDK(ctx, func(sdk *rollcall.Client) error { return run(ctx, c, sdk, args) })
	})
}

// withSDK calls f with a client of the SDK that is connected.
func (c *client) withSDK(ctx context.Context, f func(sdk *rollcall.Client) error) error {
	options := []rollcall.Option{
		rollcall.WithServers(c.base.Scheme + "://" + c.base.Host),
		rollcall.WithContextPath(strings.TrimSuffix(c.base.Path, "/") + "/nacos"),
		rollcall.WithProtocol(c.via), rollcall.WithNamespace(c.namespace), rollcall.WithAppName("rollcall-cli"),
	}
	if c.base.Scheme == "https" {
		options = append(options, rollcall.WithTLS(c.trust))
	}
	if c.login != nil {
		credentials := c.login.credentials()
		options = append(options, rollcall.WithUserPassword(credentials.Username, credentials.Password))
	}
	sdk, err := rollcall.New(options...)
	if err != nil {
		return &usageError{err}
	}
	err = c.reach(ctx, sdk)
	if err == nil {
		err = f(sdk)
	}
	return errors.Join(c.worded(ctx, err), sdk.Close())
}

// reach waits until the SDK is connected. The SDK would try for ever; a command that was
// told the protocol gives up when the first attempt fails, and one that was not when the
// time is over.
func (c *client) reach(ctx context.Context, sdk *rollcall.Client) error {
	asked, cancel := c.asked(ctx)
	defer cancel()
	var last rollcall.Status
	for last = range sdk.StatusChanges(asked) {
		switch {
		case last.State == rollcall.Connected:
			return nil
		case last.LastError != nil && c.via != rollcall.Auto:
			return last.LastError
		}
	}
	return cmp.Or(last.LastError, context.Cause(asked))
}

// asked bounds what asks once.
func (c *client) asked(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// worded words an error of the SDK for an operator.
func (c *client) worded(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, rollcall.ErrUnauthorized), errors.Is(err, rollcall.ErrForbidden):
		return fmt.Errorf("%w; log in with --%s and --%s", err, flagUser, flagPassword)
	case errors.Is(err, rollcall.ErrNotConnected):
		return c.unreachable(ctx, err)
	default:
		return err
	}
}

// named is a service as the SDK names it.
func (s serviceName) sdk(namespace string) rollcall.Service {
	return rollcall.Service{Namespace: namespace, Group: s.group, Name: s.name}
}

// fullName is the name by which the commands know a service of the SDK.
func fullName(s rollcall.Service) string {
	return serviceName{cmp.Or(s.Group, defaultGroup), s.Name}.String()
}
