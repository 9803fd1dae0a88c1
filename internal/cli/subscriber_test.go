package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// subscribe looks a service up as a client of 1.x does, which hears on a UDP port
// and acknowledges what comes.
func subscribe(t *testing.T, server *servertest.Server, service string) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		acknowledge(conn)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	target := fmt.Sprintf("%s/nacos/v1/ns/instance/list?serviceName=%s&udpPort=%d", server.URL(), service, conn.LocalAddr().(*net.UDPAddr).Port)
	if status, body := fetchText(t, target, http.Header{"User-Agent": {"Nacos-Java-Client:v1.4.2"}}); status != http.StatusOK {
		t.Fatalf("subscribe: %d %s", status, body)
	}
}

// acknowledge answers packets until conn is closed.
func acknowledge(conn *net.UDPConn) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		packet := buf[:n]
		if z, err := gzip.NewReader(bytes.NewReader(packet)); err == nil {
			if packet, err = io.ReadAll(z); err != nil {
				continue
			}
		}
		var p struct{ LastRefTime json.Number }
		if json.Unmarshal(packet, &p) == nil {
			_, _ = conn.WriteToUDPAddrPort(fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%s","data":""}`, p.LastRefTime), from)
		}
	}
}
