package rollcall

import "context"

// Client is the connection of a program to the registry. One is enough for all
// services and namespaces; several do not share anything.
type Client struct{ cfg config }

// New checks the options and starts a client, which connects in the background. The
// error tells all that is wrong with the options; that no server can be reached is
// told by [Client.Ready] and by the operations.
func New(options ...Option) (*Client, error) {
	cfg := defaults()
	for _, option := range options {
		option(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Client{cfg: cfg}, nil
}

// Ready waits until the client is connected and what was asked of it so far has been
// tried. When ctx ends before, the error has the last cause as well.
func (c *Client) Ready(ctx context.Context) error { return ErrUnsupported }

// Shutdown deregisters all ephemeral instances that were registered through the
// client and closes it. If ctx ends before, it closes all the same and says so.
func (c *Client) Shutdown(ctx context.Context) error { return ErrUnsupported }

// Close ends the client within a second, from any state, and waits for all that it
// started. Ephemeral instances go with the gRPC connection; over HTTP they become
// unhealthy and disappear for want of beats, unless [Client.Shutdown] is used.
// Closing again does nothing.
func (c *Client) Close() error { return nil }

// service fills in the defaults.
func (c *Client) service(s Service) Service {
	if s.Namespace == "" {
		s.Namespace = c.cfg.namespace
	}
	if s.Group == "" {
		s.Group = c.cfg.group
	}
	return s
}
