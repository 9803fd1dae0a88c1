package probe

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// mysqlServer speaks as much of the MySQL protocol as a check needs.
type mysqlServer struct {
	readOnly string // the answer to the read_only query
	login    []byte // the packet that answers the login; OK when nil
	silent   bool   // does not answer queries

	mu      sync.Mutex
	users   []string
	queries []string
	quits   int
}

// The packets of the protocol.
var (
	okPacket  = []byte{0, 0, 0, 2, 0, 0, 0}
	eofPacket = []byte{0xfe, 0, 0, 2, 0}
)

func errPacket(code uint16, state, text string) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte{0xff}, code), "#"+state+text...)
}

func lenenc(texts ...string) []byte {
	var b []byte
	for _, s := range texts {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

func column(name string) []byte {
	b := lenenc("def", "", "", "", name, name)
	return append(b, 0x0c, 33, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0) // utf8, VAR_STRING
}

// greeting offers mysql_native_password with protocol 4.1 and plugin names.
func greeting() []byte {
	b := append([]byte{10}, "8.0.30\x00"...)
	b = append(b, 1, 0, 0, 0)
	b = append(b, "12345678\x00"...)
	b = append(b, 0x0f, 0xa2, 33, 2, 0, 0x08, 0x00, 21) // lower capabilities, charset, status, upper ones
	b = append(b, make([]byte, 10)...)
	b = append(b, "123456789012\x00"...)
	return append(b, "mysql_native_password\x00"...)
}

func (s *mysqlServer) serve(conn net.Conn) {
	write := func(seq byte, packets ...[]byte) {
		var out []byte
		for _, p := range packets {
			out = append(out, byte(len(p)), byte(len(p)>>8), byte(len(p)>>16), seq)
			out = append(out, p...)
			seq++
		}
		_, _ = conn.Write(out)
	}
	read := func() []byte {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			return nil
		}
		body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return nil
		}
		return body
	}
	write(0, greeting())
	login := read()
	if len(login) < 33 {
		return
	}
	user, _, _ := strings.Cut(string(login[32:]), "\x00")
	s.note(&s.users, user)
	if s.login != nil {
		write(2, s.login)
		return
	}
	write(2, okPacket)
	for {
		packet := read()
		if len(packet) == 0 {
			return
		}
		switch packet[0] {
		case 1: // COM_QUIT
			s.mu.Lock()
			s.quits++
			s.mu.Unlock()
			return
		case 3: // COM_QUERY
			s.answer(string(packet[1:]), write)
		}
	}
}

func (s *mysqlServer) answer(query string, write func(byte, ...[]byte)) {
	s.note(&s.queries, query)
	switch {
	case s.silent:
	case query == readOnlyQuery:
		write(1, []byte{2}, column("Variable_name"), column("Value"), eofPacket, lenenc("read_only", s.readOnly), eofPacket)
	case query == "select 1":
		write(1, []byte{1}, column("1"), eofPacket, lenenc("1"), eofPacket)
	case query == "select nothing":
		write(1, []byte{1}, column("1"), eofPacket, eofPacket)
	case query == "do 1":
		write(1, okPacket)
	default:
		write(1, errPacket(1064, "42000", "You have an error in your SQL syntax"))
	}
}

func (s *mysqlServer) note(list *[]string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, text)
}

func TestMySQL(t *testing.T) {
	for _, test := range []struct {
		name    string
		server  *mysqlServer
		command string
		want    Outcome
		detail  string
	}{
		{"login alone", &mysqlServer{}, "", Up, ""},
		{"a query", &mysqlServer{}, "select 1", Up, ""},
		{"a query without rows", &mysqlServer{}, "select nothing", Up, ""},
		{"a statement", &mysqlServer{}, "do 1", Up, ""},
		{"a source", &mysqlServer{readOnly: "OFF"}, readOnlyQuery, Up, ""},
		{"a replica", &mysqlServer{readOnly: "ON"}, readOnlyQuery, Down, "replica"},
		{"a bad query", &mysqlServer{}, "selec 1", Refused, "SQL syntax"},
		{"a slow query", &mysqlServer{silent: true}, "select 1", Down, "no answer in time"},
		{
			"wrong password",
			&mysqlServer{login: errPacket(1045, "28000", "Access denied for user 'probe'@'host'")},
			"", Refused, "Access denied",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := listen(t, "tcp4", "127.0.0.1:0", test.server.serve)
			check := registry.HealthCheck{
				Type: registry.CheckMySQL, User: "probe", Password: "secret", Command: test.command,
			}
			got := quick().Probe(t.Context(), at(addr, check))
			want(t, got, test.want, test.detail)
			if strings.Contains(got.Detail, "secret") {
				t.Errorf("tells the password: %s", got.Detail)
			}
			test.server.mu.Lock()
			defer test.server.mu.Unlock()
			if len(test.server.users) != 1 || test.server.users[0] != "probe" {
				t.Errorf("logged in as %q", test.server.users)
			}
			if test.command != "" && test.server.login == nil && (len(test.server.queries) != 1 || test.server.queries[0] != test.command) {
				t.Errorf("asked %q", test.server.queries)
			}
			if test.want == Up && test.server.quits != 1 {
				t.Errorf("said goodbye %d times", test.server.quits)
			}
		})
	}
}

func TestMySQLThatIsNone(t *testing.T) {
	check := registry.HealthCheck{Type: registry.CheckMySQL, User: "probe"}
	mute := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	want(t, quick().Probe(t.Context(), at(mute, check)), Down, "no answer in time")
	ssh := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n") })
	want(t, quick().Probe(t.Context(), at(ssh, check)), Down, "")
	want(t, quick().Probe(t.Context(), Target{Host: "127.0.0.1", Port: closedPort(t), Check: check}), Refused, "")
}
