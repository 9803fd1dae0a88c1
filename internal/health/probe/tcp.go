package probe

import (
	"context"
	"net"
)

// tcp connects and leaves.
func (p *Prober) tcp(ctx context.Context, t *Target) Result {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	conn, err := p.dial(ctx, t)
	if err != nil {
		return failed(err)
	}
	_ = conn.Close() // it answered; what becomes of the connection is of no interest
	return Result{Outcome: Up}
}

// dial connects. Closing the connection resets it, so that checks every few
// seconds leave no trail of TIME_WAIT entries on this machine.
func (p *Prober) dial(ctx context.Context, t *Target) (net.Conn, error) {
	conn, err := p.dialer.DialContext(ctx, "tcp", t.Address())
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is only slower to be forgotten
	}
	return conn, nil
}
