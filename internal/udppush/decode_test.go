package udppush

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

func TestDecodeAck(t *testing.T) {
	for _, test := range []struct {
		text string
		want int64 // 0: no acknowledgement
	}{
		{`{"type":"push-ack","lastRefTime":"1795999226612","data":""}`, 1795999226612},          // Java
		{`{"data":"","lastRefTime":"1795999226612","type":"push-ack"}`, 1795999226612},          // Go
		{`{"type":"push-ack","lastRefTime":1795999226612,"data":""}`, 1795999226612},            // Node
		{`{"type":"push-ack","lastRefTime":"1795999226612"}`, 1795999226612},                    // without data
		{` {"type":"push-ack","lastRefTime":"1"}`, 0},                                           // nobody sends a blank first
		{`{ "type" : "push-ack" , "lastRefTime" : 7 , "data" : {"a":[1]} }` + "\n", 7},          // any data
		{`{"type":"push-ack","lastRefTime":"9223372036854775807"}`, 9223372036854775807},        // the largest
		{`{"type":"push-ack","lastRefTime":"9223372036854775808"}`, 0},                          // too large
		{`{"type":"push-ack","lastRefTime":1e12}`, 0},                                           // no whole number
		{`{"type":"push-ack","lastRefTime":"-5"}`, 0},                                           //
		{`{"type":"push-ack","lastRefTime":""}`, 0},                                             //
		{`{"type":"push-ack","lastRefTime":null}`, 0},                                           //
		{`{"type":"push-ack"}`, 0},                                                              //
		{`{"type":"dump-ack","lastRefTime":"5"}`, 0},                                            //
		{`{"type":["push-ack"],"lastRefTime":"5"}`, 0},                                          //
		{`{"type":"push-ack","lastRefTime":"5"`, 0},                                             // cut
		{`["push-ack","5"]`, 0},                                                                 //
		{``, 0},                                                                                 //
		{`OPTIONS sip:x SIP/2.0`, 0},                                                            //
		{"\x1f\x8b\x08\x00garbage", 0},                                                          //
		{`{"type":"push-ack","lastRefTime":"5","data":"` + strings.Repeat("x", 1000) + `"}`, 5}, //
	} {
		got, ok := decodeAck([]byte(test.text))
		if ok != (test.want != 0) || got != test.want && ok {
			t.Errorf("%.80s: got %d %v, want %d", test.text, got, ok, test.want)
		}
	}
}

func FuzzDecodeAck(f *testing.F) {
	for _, seed := range []string{
		stringAck(1795999226612), `{"type":"push-ack","lastRefTime":5}`, `{"type":"push-ack","lastRefTime":"5`,
		``, `{`, "\x1f\x8b", `{"type":"push-ack","lastRefTime":{"a":"5"}}`, "OPTIONS sip:x SIP/2.0\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		number, ok := decodeAck(b)
		if !ok {
			return
		}
		if number <= 0 || !json.Valid(b) {
			t.Errorf("%q was taken for an acknowledgement of %d", b, number)
		}
		if again, ok := decodeAck([]byte(stringAck(number))); !ok || again != number {
			t.Errorf("%d came back as %d, %v", number, again, ok)
		}
	})
}

func FuzzPacket(f *testing.F) {
	f.Add(`{"hosts":[]}`, int64(1))
	f.Add(`{"name":"\"\\ü","a":"<&>"}`, int64(1)<<53)
	f.Add(strings.Repeat(`{"name":"x"}`, 200), int64(77))
	var c compressor
	f.Fuzz(func(t *testing.T, data string, number int64) {
		p, err := readPacket(c.packet([]byte(data), number).bytes)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		want := strings.ToValidUTF8(data, "\ufffd")
		if strings.ToValidUTF8(p.Data, "\ufffd") != p.Data || len([]rune(want)) > len([]rune(p.Data)) {
			t.Errorf("got %q, want %q", p.Data, want)
		}
		if data == want && p.Data != data || p.Type != "dom" || p.LastRefTime != number {
			t.Errorf("got %+v, want %q and %d", p, data, number)
		}
	})
}

func TestCompression(t *testing.T) {
	var c compressor
	frame := len(appendPacket(nil, nil, 1795999226612))
	for _, test := range []struct {
		plain int
		gzip  bool
	}{{1022, false}, {1023, false}, {1024, true}, {1025, true}, {70000, true}} { // live 1.4.8
		p := c.packet([]byte(strings.Repeat("a", test.plain-frame)), 1795999226612)
		if compressed := p.bytes[0] == 0x1f; compressed != test.gzip {
			t.Errorf("%d bytes: compressed %v, want %v", test.plain, compressed, test.gzip)
		}
		if text, err := p.text(); err != nil || len(text) != test.plain {
			t.Errorf("read back %d bytes, %v, want %d", len(text), err, test.plain)
		}
	}
}

func TestNumbersGrow(t *testing.T) {
	var s sequence
	last := int64(0)
	for i, wall := range []int64{1000, 1000, 1000, 900, 1001, 5000, 1} {
		n := s.next(wall)
		if n <= last || n < wall {
			t.Errorf("number %d is %d after %d at %d", i, n, last, wall)
		}
		last = n
	}
}

func TestSizeLimits(t *testing.T) {
	for agent, want := range map[string]int{
		goAgent: 4024, "nacos-go-sdk:v0.9.0": 4024, javaAgent: 65507, "Nacos-CSharp-Client:v1.0.0": 65507, "": 65507,
	} {
		if got := sizeLimit(agent); got != want {
			t.Errorf("%q: got %d, want %d", agent, got, want)
		}
	}
}

func BenchmarkDecodeAck(b *testing.B) {
	for name, text := range map[string]string{
		"ack": stringAck(1795999226612), "sip": "OPTIONS sip:x SIP/2.0", "json": `{"type":"` + strconv.Itoa(7) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decodeAck([]byte(text))
			}
		})
	}
}
