package httpapi

import (
	"bufio"
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// scanned is a head that arrived in pieces of so many bytes.
func scanned(text string, piece int) (h head, complete bool, f *requestFault) {
	h.reset()
	for n := piece; f == nil && !complete && n < len(text)+piece; n += piece {
		arrived := []byte(text[:min(n, len(text))])
		if complete, f = h.scan(arrived); complete && f == nil {
			h.take(arrived)
		}
	}
	return h, complete, f
}

func TestHead(t *testing.T) {
	const text = "PUT /a?b HTTP/1.1\r\nhOsT: h:1\r\nX-A:\t 1 , 2 \r\nX-Empty:\r\nx-a: 3\r\nContent-Length: 007\r\nConnection: Keep-Alive\r\n\r\nbody"
	for piece := range len(text) {
		h, complete, f := scanned(text, piece+1)
		if !complete || f != nil || h.end != len(text)-len("body") {
			t.Fatalf("pieces of %d: complete %v, end %d, %v", piece+1, complete, h.end, f)
		}
		for name, want := range map[string]string{"Host": "h:1", "x-A": "1 , 2", "X-Empty": "", "X-B": "", "Content-Length": "007"} {
			if got := string(h.get(name)); got != want {
				t.Errorf("pieces of %d: %s is %q, want %q", piece+1, name, got, want)
			}
		}
		if all := h.all("X-A"); len(all) != 2 || string(all[1]) != "3" || h.length != 7 || !h.is11() || h.closes() ||
			string(h.part(h.method)) != "PUT" || string(h.part(h.target)) != "/a?b" {
			t.Errorf("pieces of %d: %q, %+v", piece+1, all, h)
		}
	}
}

func TestHeadRefuses(t *testing.T) {
	for _, tt := range []struct{ line, headers, want string }{
		{"GET /", "", "request line"},
		{"GET  / HTTP/1.1", "", "request line"},
		{"GET /  HTTP/1.1", "", "request line"},
		{"GET /a b HTTP/1.1", "", "request line"},
		{"GET  HTTP/1.1", "", "request line"},
		{"G\tT / HTTP/1.1", "", "request line"},
		{"GET / http/1.1", "", "request line"},
		{"GET / HTTP/1.1 ", "", "request line"},
		{"GET / HTTP/1.10", "", "request line"},
		{"GET / HTTP/1-1", "", "request line"},
		{"GET / HTTP/x.1", "", "request line"},
		{"GET / HTTP/2.0", "", "version"},
		{"", "X-A : b\r\n", "header line"},
		{"", " X-A: b\r\n", "header line"},
		{"", ": b\r\n", "header line"},
		{"", "X-A\r\n", "header line"},
		{"", "X A: b\r\n", "header line"},
		{"", "X-Ä: b\r\n", "header line"},
		{"", "X-A: b\n", "CRLF"},
		{"", "X-A: b\r\n\n", "CRLF"},
		{"", "X-A: b\x00\r\n", "control"},
		{"", "X-A: b\rc\r\n", "control"},
		{"", "X-A: \x7f\r\n", "control"},
		{"", "Host: h\r\n", "two Host"},
		{"", "Content-Length: 1\r\ncontent-length: 1\r\n", "two Content-Length"},
		{"", "Content-Length: +1\r\n", "not a number"},
		{"", "Content-Length: 1, 1\r\n", "not a number"},
		{"", "Content-Length:\r\n", "not a number"},
		{"", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "both"},
		{"", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", "both"},
		{"", "Transfer-Encoding: gzip, chunked\r\n", "coding"},
		{"", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "coding"},
		{"GET / HTTP/1.0", "Transfer-Encoding: chunked\r\n", "HTTP/1.0"},
	} {
		line := tt.line
		if line == "" {
			line = "GET / HTTP/1.1"
		}
		_, _, f := scanned(line+"\r\nHost: h\r\n"+tt.headers+"\r\n", 1)
		if f == nil || !strings.Contains(f.message, tt.want) {
			t.Errorf("%q %q: got %v, want %q", line, tt.headers, f, tt.want)
		}
	}
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n"} {
		if _, _, f := scanned(text, 1); f == nil || !strings.Contains(f.message, "Host") {
			t.Errorf("%q: got %v", text, f)
		}
	}
}

func TestHeadCloses(t *testing.T) {
	for _, tt := range []struct {
		version, connection string
		want                bool
	}{
		{"1.1", "", false},
		{"1.1", "keep-alive", false},
		{"1.1", "Close", true},
		{"1.1", "a , close;q=1", true},
		{"1.1", "closed", false},
		{"1.0", "", true},
		{"1.0", "Keep-Alive", false},
		{"1.0", "keep-alive, close", true},
		{"1.1", "a\r\nConnection: close", true},
	} {
		h, complete, f := scanned("GET / HTTP/"+tt.version+"\r\nHost: h\r\nConnection: "+tt.connection+"\r\n\r\n", 1000)
		if !complete || f != nil || h.closes() != tt.want {
			t.Errorf("HTTP/%s, %q: closes is %v, %v", tt.version, tt.connection, h.closes(), f)
		}
	}
}

func TestParseLength(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "00012": 12} {
		if n, ok := parseLength([]byte(text)); !ok || n != want {
			t.Errorf("%s: got %d, %v", text, n, ok)
		}
	}
	if n, ok := parseLength(bytes.Repeat([]byte("9"), 100)); !ok || n < math.MaxInt/2 {
		t.Errorf("a long one: got %d, %v", n, ok)
	}
}

// FuzzHead compares what is accepted with what net/http reads of the same bytes, if
// that accepts them too.
func FuzzHead(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\nHost: h\r\nX-A:  a,b \r\nContent-Length: 3\r\n\r\nabc", byte(1))
	f.Add("POST /%20?a=b HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n", byte(7))
	f.Fuzz(func(t *testing.T, text string, piece byte) {
		h, complete, fault := scanned(text, int(piece)+1)
		if fault != nil || !complete {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		if method, target := string(h.part(h.method)), string(h.part(h.target)); method != r.Method || target != r.RequestURI {
			t.Errorf("%s %s, net/http reads %s %s", method, target, r.Method, r.RequestURI)
		}
		if want := r.ContentLength; want > 0 && int64(h.length) != want || (h.length == chunked) != slices.Equal(r.TransferEncoding, []string{"chunked"}) {
			t.Errorf("length %d, net/http reads %d %v", h.length, want, r.TransferEncoding)
		}
		if h.closes() != r.Close {
			t.Errorf("closes is %v, net/http reads %v", h.closes(), r.Close)
		}
		for name, values := range r.Header {
			got := h.all(name)
			if !slices.EqualFunc(got, values, func(b []byte, s string) bool { return bytes.Equal(b, []byte(s)) }) {
				t.Errorf("%s: %q, net/http reads %q", name, got, values)
			}
		}
	})
}
