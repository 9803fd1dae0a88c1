package probe

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// fullListener returns a listener with the shortest queue, which nobody accepts
// from, and a function that keeps a connection until the test ends.
func fullListener(t *testing.T) (*net.TCPAddr, func(net.Conn)) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}
	return addr, func(conn net.Conn) { t.Cleanup(func() { _ = conn.Close() }) }
}

// TestProbesLeaveNothingBehind: no descriptors and no TIME_WAIT entries.
func TestProbesLeaveNothingBehind(t *testing.T) {
	open := listen(t, "tcp4", "127.0.0.1:0", func(net.Conn) {})
	web := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"))
		_, _ = conn.Read(make([]byte, 1)) // lets the prober close first
	})
	closed := closedPort(t)
	before := descriptors(t)
	p := quick()
	for range 100 {
		want(t, p.Probe(t.Context(), at(open, registry.HealthCheck{Type: registry.CheckTCP})), Up, "")
		want(t, p.Probe(t.Context(), at(web, registry.HealthCheck{Type: registry.CheckHTTP})), Up, "")
		want(t, p.Probe(t.Context(), Target{Host: "127.0.0.1", Port: closed}), Refused, "")
	}
	for _, port := range []int{open.Port, web.Port, int(closed)} {
		if n := timeWaits(t, port); n > 0 {
			t.Errorf("%d TIME_WAIT entries of port %d", n, port)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		n := descriptors(t)
		if n <= before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", n, before)
		}
		<-time.After(time.Millisecond)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// timeWaits counts the connections to a local port that linger here.
func timeWaits(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	remote := ":" + strings.ToUpper(leftPad(strconv.FormatInt(int64(port), 16)))
	n := 0
	for line := range strings.SplitSeq(string(table), "\n") {
		if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[2], remote) && f[3] == "06" {
			n++
		}
	}
	return n
}

func leftPad(hex string) string { return strings.Repeat("0", 4-len(hex)) + hex }
