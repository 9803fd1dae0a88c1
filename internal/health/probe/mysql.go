package probe

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// readOnlyQuery asks a MySQL server whether it is a replica; the answer ON means
// that it is. Source: Nacos MysqlHealthCheckProcessor.CHECK_MYSQL_MASTER_SQL.
const readOnlyQuery = "show global variables where variable_name='read_only'"

// mySQL logs in, and runs the command of the health checker when there is one.
func (p *Prober) mySQL(ctx context.Context, t *Target) Result {
	connector, err := mysql.NewConnector(p.mySQLConfig(t))
	if err != nil {
		return Result{Down, err.Error()}
	}
	login, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	conn, err := connector.Connect(login)
	if err != nil {
		return failedMySQL(err)
	}
	defer func() { _ = conn.Close() }() // the answer is known by then
	command := strings.TrimSpace(t.Check.Command)
	if command == "" {
		return Result{Outcome: Up}
	}
	querying, cancel := context.WithTimeout(ctx, 2*p.cfg.Timeout)
	defer cancel()
	second, err := query(querying, conn, command)
	if err != nil {
		return failedMySQL(err)
	}
	if strings.EqualFold(command, readOnlyQuery) && strings.EqualFold(second, "ON") {
		return Result{Down, "the MySQL server is a read-only replica"}
	}
	return Result{Outcome: Up}
}

func (p *Prober) mySQLConfig(t *Target) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd = t.Check.User, t.Check.Password
	cfg.Net, cfg.Addr = "tcp", t.Address()
	cfg.CheckConnLiveness = false // a connection is used once
	cfg.Logger = &mysql.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := p.dialer.DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			return politeConn{tcp}, nil
		}
		return conn, err
	}
	return cfg
}

// query runs a command and returns the second column of its first row, "" when
// there is none.
func query(ctx context.Context, conn driver.Conn, command string) (string, error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return "", errors.New("the MySQL driver runs no plain queries")
	}
	rows, err := queryer.QueryContext(ctx, command, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // the connection is not used again
	row := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(row)
	switch {
	case errors.Is(err, io.EOF):
		return "", nil
	case err != nil:
		return "", err
	case len(row) < 2:
		return "", nil
	}
	return fmt.Sprintf("%s", row[1]), nil
}

// failedMySQL: what the server itself objects to is final.
func failedMySQL(err error) Result {
	var refusal *mysql.MySQLError
	if errors.As(err, &refusal) {
		return Result{Refused, refusal.Error()}
	}
	return failed(err)
}

// politeConn lets the server close first, as it does when a client has said
// goodbye: the TIME_WAIT entry is then the server's, and the server counts no
// broken connection. One that does not close in time is reset.
type politeConn struct{ *net.TCPConn }

// politeWait bounds the wait for the server's end.
const politeWait = 100 * time.Millisecond

// Close implements [net.Conn].
func (c politeConn) Close() error {
	_ = c.SetReadDeadline(time.Now().Add(politeWait)) // if it cannot be set, the read fails at once
	if _, err := io.Copy(io.Discard, c.TCPConn); err != nil {
		_ = c.SetLinger(0) // the reset is a courtesy to this machine only
	}
	return c.TCPConn.Close()
}
