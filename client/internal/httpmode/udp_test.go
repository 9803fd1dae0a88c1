package httpmode

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// push makes the datagram of a push.
func push(name string, refTime int64) []byte {
	data := fmt.Sprintf(`{"name":%q,"cacheMillis":10000,"hosts":[{"ip":"1.1.1.1","port":1}],"lastRefTime":%d,"clusters":""}`, name, refTime)
	b, _ := json.Marshal(map[string]any{"type": "dom", "data": data, "lastRefTime": 1848771259685})
	return b
}

func compressed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func TestPackets(t *testing.T) {
	good := push("DEFAULT_GROUP@@orders", 9)
	const ack = `{"type":"push-ack","lastRefTime":"1848771259685","data":""}`
	tests := map[string]struct {
		datagram     []byte
		ack, dropped string
	}{
		"a push":            {good, ack, ""},
		"compressed":        {compressed(good), ack, ""},
		"of another":        {push("DEFAULT_GROUP@@other", 9), "", "udp_unwanted"},
		"cut":               {good[:len(good)-9], "", "udp_malformed"},
		"cut, compressed":   {compressed(good)[:40], "", "udp_malformed"},
		"empty":             {nil, "", "udp_malformed"},
		"no list":           {[]byte(`{"type":"dom","data":"x","lastRefTime":1}`), "", "udp_malformed"},
		"no name":           {[]byte(`{"type":"dom","data":"{}","lastRefTime":1}`), "", "udp_malformed"},
		"a time of text":    {bytes.Replace(good, []byte(`1848771259685`), []byte(`"1848771259685"`), 1), ack, ""},
		"a time of no sort": {bytes.Replace(good, []byte(`1848771259685`), []byte(`{}`), 1), "", "udp_malformed"},
		"a long time":       {bytes.Replace(good, []byte(`1848771259685`), bytes.Repeat([]byte("1"), 99), 1), "", "udp_malformed"},
		"dump":              {[]byte(`{"type":"dump","data":"","lastRefTime":7}`), `{"type":"dump-ack","lastRefTime":"7","data":"{}"}`, ""},
		"unknown":           {[]byte(`{"type":"x","lastRefTime":7}`), `{"type":"unknown-ack","lastRefTime":"7","data":""}`, ""},
	}
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		subscribe(t, w)
		r := &receiver{transport: w.Transport, events: w.events}
		for name, test := range tests {
			before := w.events.pushes()
			got, dropped := r.handle(test.datagram, server)
			if string(got) != test.ack || dropped != test.dropped {
				t.Errorf("%s: answered %s, dropped for %q; want %s, %q", name, got, dropped, test.ack, test.dropped)
			}
			synctest.Wait()
			if handed := w.events.pushes() > before; handed != (test.ack == ack) {
				t.Errorf("%s: handed over: %t", name, handed)
			}
		}
	})
}

func TestBombs(t *testing.T) {
	text := `{"type":"dom","data":"` + strings.Repeat(" ", maxStrange) + `","lastRefTime":1}`
	bomb := compressed([]byte(text))
	if _, err := readPacket(bomb, int64(len(text))); err != nil {
		t.Errorf("of just the size that is allowed: %v", err)
	}
	if _, err := readPacket(bomb, int64(len(text)-1)); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v", err)
	}
	transport := New(Config{})
	r := &receiver{transport: transport, events: new(recorder)}
	if ack, dropped := r.handle(bomb, server); ack != nil || dropped != "udp_malformed" {
		t.Errorf("a stranger's: %s, %s", ack, dropped)
	}
}

// TestRecordedPackets reads what servers of 1.4.8 and 0.9.0 sent.
func TestRecordedPackets(t *testing.T) {
	for _, version := range []string{"1.4.8", "0.9.0"} {
		text, err := os.ReadFile("../../../test/golden/testdata/udp-" + version + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var recording any
		if err := json.Unmarshal(text, &recording); err != nil {
			t.Fatal(err)
		}
		packets := 0
		each(recording, func(p map[string]any) {
			datagram, _ := json.Marshal(p)
			read, err := readPacket(datagram, maxInflated)
			var info grpcv2.ServiceInfo
			hosts := 0
			if err == nil {
				err = grpcv2.ReadServiceInfo([]byte(read.Data), &info, func(*grpcv2.Host) { hosts++ })
			}
			if err != nil || !info.HasHosts || !strings.Contains(info.Name, "{svc}") || info.LastRefTime == 0 || info.CacheMillis == 0 {
				t.Errorf("%s: %s: %+v, %v", version, datagram, info, err)
			}
			if strings.Count(read.Data, `"ip":`) != hosts {
				t.Errorf("%s: %s: %d hosts", version, datagram, hosts)
			}
			packets++
		})
		if packets == 0 {
			t.Errorf("%s: no packets in the recording", version)
		}
	}
}

// each finds the packets in a recording.
func each(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			each(x, f)
		}
	case map[string]any:
		if p, ok := v["packet"].(map[string]any); ok && p["type"] == "dom" {
			f(p)
		}
		for _, x := range v {
			each(x, f)
		}
	}
}

// TestSocket receives over loopback.
func TestSocket(t *testing.T) {
	events := new(recorder)
	transport := New(Config{CallerConfig: CallerConfig{}})
	r, err := newReceiver("127.0.0.1:0", transport, events)
	if err != nil {
		t.Fatal(err)
	}
	transport.caller.learn(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	transport.subscriptions[orders] = &subscription{transport: transport, service: orders}
	done := make(chan struct{})
	go func() { r.run(); close(done) }()
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", r.port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, datagram := range [][]byte{{}, []byte("nonsense"), push("DEFAULT_GROUP@@orders", 3)} {
		if _, err := conn.Write(datagram); err != nil {
			t.Fatal(err)
		}
	}
	answer := make([]byte, 1000)
	n, err := conn.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), "push-ack") {
		t.Errorf("answered %s, %v", answer[:n], err)
	}
	r.close()
	<-done
}

func FuzzPacket(f *testing.F) {
	f.Add(push("DEFAULT_GROUP@@orders", 1))
	f.Add(compressed(push("DEFAULT_GROUP@@orders", 1)))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	transport := New(Config{})
	transport.caller.learn(net.TCPAddrFromAddrPort(server))
	r := &receiver{transport: transport, events: new(recorder)}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		ack, dropped := r.handle(datagram, server)
		if (ack == nil) == (dropped == "") {
			t.Fatalf("answered %s, dropped for %q", ack, dropped)
		}
		if len(ack) > 256 {
			t.Fatalf("an answer of %d bytes", len(ack))
		}
		if ack, _ := r.handle(datagram, netip.MustParseAddrPort("10.9.9.9:1")); ack != nil {
			t.Fatalf("a stranger is answered %s", ack)
		}
	})
}
