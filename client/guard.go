package rollcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
)

// guard calls a function of the user. A panic becomes an error.
func (c *Client) guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked(what, p)
			c.cfg.metrics.Dropped("panic")
			err = fmt.Errorf("%s panicked: %v", what, p)
		}
	}()
	return f()
}

func (c *Client) panicked(what string, p any) {
	c.logger.Error("a function of the user panicked", "function", what, "panic", fmt.Sprint(p))
}

var errNoConn = errors.New("the dialer returned neither a connection nor an error")

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// survive makes an error of a panic of a dialer, and of neither a connection nor an error.
// nil stays nil.
func survive(dial dialer) dialer {
	if dial == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("dialer panicked: %v", p)
			}
		}()
		if conn, err = dial(ctx, network, address); conn == nil && err == nil {
			err = errNoConn
		}
		return conn, err
	}
}

// guardAll puts a guard around all functions that the options gave.
func (c *Client) guardAll() {
	cfg := &c.cfg
	cfg.metrics = &guardedMetrics{cfg.metrics, c}
	if source := cfg.source; source != nil {
		cfg.source = func(ctx context.Context) (entries []string, err error) {
			err = c.guard("server source", func() (err error) { entries, err = source(ctx); return err })
			return entries, err
		}
	}
	if credentials := cfg.credentials; credentials != nil {
		cfg.credentials = func(ctx context.Context) (found auth.Credentials, err error) {
			err = c.guard("credentials", func() (err error) { found, err = credentials(ctx); return err })
			return found, err
		}
	}
	if dial := cfg.dial; dial != nil {
		cfg.dial = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = c.guard("dialer", func() (err error) { conn, err = dial(ctx, network, address); return err })
			if err == nil && conn == nil {
				err = errNoConn
			}
			return conn, err
		}
	}
}

// guardedMetrics tells a Metrics of errors as users know them, and survives its panics.
type guardedMetrics struct {
	next   Metrics
	client *Client
}

func (g *guardedMetrics) survive() {
	if p := recover(); p != nil {
		g.client.panicked("metrics", p)
	}
}

func (g *guardedMetrics) CallDone(op string, took time.Duration, err error) {
	defer g.survive()
	if err != nil {
		err = opError(op, Service{}, err)
	}
	g.next.CallDone(op, took, err)
}

func (g *guardedMetrics) Published(s Service, instances int, took time.Duration) {
	defer g.survive()
	g.next.Published(s, instances, took)
}

func (g *guardedMetrics) Dropped(reason string) {
	defer g.survive()
	g.next.Dropped(reason)
}

func (g *guardedMetrics) Connected(server string, p Protocol) {
	defer g.survive()
	g.next.Connected(server, p)
}

func (g *guardedMetrics) Disconnected(cause error) {
	defer g.survive()
	g.next.Disconnected(cause)
}
