package ops_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/servertest"
)

// rig is a server and what tests ask of it.
type rig struct {
	t *testing.T
	*servertest.Server
}

func newRig(t *testing.T, options ...servertest.Option) *rig {
	t.Helper()
	return &rig{t, servertest.New(t, options...)}
}

// do sends a request and returns status and body.
func (r *rig) do(method, target string, body io.Reader, headers ...string) (status int, text string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL()+target, body)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, target, err)
	}
	return resp.StatusCode, string(b)
}

// must sends a request that is to be answered 200.
func (r *rig) must(method, target string) string {
	r.t.Helper()
	status, body := r.do(method, target, http.NoBody)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, target, status, body)
	}
	return body
}

// v1 calls the instance API with k=v parameters.
func (r *rig) v1(method, path string, params ...string) {
	r.t.Helper()
	r.must(method, "/nacos/v1/ns"+path+"?"+query(params...))
}

func query(params ...string) string {
	q := url.Values{}
	for _, p := range params {
		k, v, _ := strings.Cut(p, "=")
		q.Set(k, v)
	}
	return q.Encode()
}

func (r *rig) register(params ...string) {
	r.t.Helper()
	r.v1("POST", "/instance", params...)
}

// subscribe looks a service up as a Java client that hears on a UDP port.
func (r *rig) subscribe(service string, params ...string) {
	r.t.Helper()
	target := "/nacos/v1/ns/instance/list?" + query(append(params, "serviceName="+service)...)
	if status, body := r.do("GET", target, http.NoBody, "User-Agent", "Nacos-Java-Client:v1.4.2"); status != http.StatusOK {
		r.t.Fatalf("subscribe: %d %s", status, body)
	}
}

// ask reads an answer of the operator API.
func ask[T any](r *rig, path string, params ...string) (answer T) {
	r.t.Helper()
	body := r.must("GET", "/rollcall/v1/"+path+"?"+query(params...))
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		r.t.Fatalf("%s: %v in %s", path, err, body)
	}
	return answer
}

// refusal returns the sentence of an answer that is not 200, after its status.
func (r *rig) refusal(method, target string, body io.Reader) string {
	r.t.Helper()
	status, text := r.do(method, target, body)
	var e opsv1.Error
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		r.t.Fatalf("%s %s: %d %q is no refusal", method, target, status, text)
	}
	return fmt.Sprint(status, " ", e.Error)
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		<-tick.C
	}
}

// hearer is a UDP client that may acknowledge what it is sent.
type hearer struct{ conn *net.UDPConn }

func newHearer(t *testing.T, acknowledge bool) *hearer {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return // closed
			}
			if number := packetNumber(buf[:n]); number != "" && acknowledge {
				_, _ = conn.WriteToUDPAddrPort(fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%s","data":""}`, number), from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	return &hearer{conn}
}

// packetNumber returns what a packet is acknowledged by, "" if it is none.
func packetNumber(packet []byte) string {
	if bytes.HasPrefix(packet, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(packet))
		if err != nil {
			return ""
		}
		if packet, err = io.ReadAll(z); err != nil {
			return ""
		}
	}
	var p struct{ LastRefTime json.Number }
	if json.Unmarshal(packet, &p) != nil {
		return ""
	}
	return p.LastRefTime.String()
}

func (h *hearer) port() string {
	_, port, _ := net.SplitHostPort(h.conn.LocalAddr().String())
	return port
}

// still hides what differs from run to run.
func still(text string) string {
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`\d+(\.\d+)?(ms|µs|s) after`).ReplaceAllString(text, "SOON after")
}
