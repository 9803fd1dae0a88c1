package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// blocked has the server answer a request of a client that does not read, up to
// the head of the answer.
func blocked(t *testing.T, s *Server, headers string) (client net.Conn) {
	t.Helper()
	client, other := net.Pipe()
	done := make(chan struct{})
	go func() { s.ServeConn(t.Context(), other, nil); close(done) }()
	t.Cleanup(func() { _ = client.Close(); <-done })
	if _, err := io.WriteString(client, "GET /ok HTTP/1.1\r\nHost: h\r\n"+headers+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return client
}

func read(t *testing.T, client net.Conn) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// Clients that do not read share what their answers share; beyond the limit there
// is a refusal, and what was counted comes back.
func TestLargeAnswersShareMemory(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxAnswerMemory = 3 << 20
	shared := bytes.Repeat([]byte("s"), 2<<20)
	private := make(chan bool, 1)
	s := internalServer(t, cfg, func(x *Exchange) {
		if <-private {
			x.JSON(200, bytes.Repeat([]byte("p"), 2<<20))
			return
		}
		x.JSONParts(200, []byte("["), shared, []byte("]"))
	})
	private <- false
	readers := []net.Conn{blocked(t, s, "")}
	for range 9 {
		private <- false
		readers = append(readers, blocked(t, s, ""))
	}
	waitFor(t, "ten answers", func() bool { return s.answers.holders(shared) == 10 })
	if used := s.answers.inUse(); used != int64(cap(shared)) {
		t.Errorf("ten answers that share 2 MiB take %d bytes", used)
	}
	private <- true
	if resp, body := read(t, blocked(t, s, "")); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !resp.Close {
		t.Errorf("one more of 2 MiB: %d %q, close %v", resp.StatusCode, body, resp.Close)
	}
	for _, client := range readers[1:] {
		_ = client.Close()
	}
	want := "[" + string(shared) + "]"
	if resp, body := read(t, readers[0]); resp.StatusCode != 200 || string(body) != want {
		t.Errorf("the shared answer: %d, %d bytes", resp.StatusCode, len(body))
	}
	waitFor(t, "all memory given back", func() bool { return s.answers.inUse() == 0 && s.answers.holders(shared) == 0 })
	private <- true
	if resp, body := read(t, blocked(t, s, "")); resp.StatusCode != 200 || len(body) != 2<<20 {
		t.Errorf("now that there is room: %d, %d bytes", resp.StatusCode, len(body))
	}
}

// An answer in parts is compressed as one, unless there is no memory for that.
func TestLargeAnswersCompressed(t *testing.T) {
	for _, tt := range []struct {
		most     int64
		encoding string
	}{{64 << 20, "gzip"}, {3 << 20, ""}} {
		cfg := DefaultConfig()
		cfg.MaxAnswerMemory = tt.most
		shared := []byte(strings.Repeat("s", 2<<20))
		s := internalServer(t, cfg, func(x *Exchange) { x.JSONParts(200, []byte("["), shared, []byte("]")) })
		resp, body := read(t, blocked(t, s, "Accept-Encoding: gzip\r\n"))
		if got := resp.Header.Get("Content-Encoding"); got != tt.encoding {
			t.Errorf("of %d bytes: encoding %q, want %q", tt.most, got, tt.encoding)
		}
		if small := len(body) < 1<<20; small != (tt.encoding != "") {
			t.Errorf("of %d bytes: body of %d bytes", tt.most, len(body))
		}
		waitFor(t, "all memory given back", func() bool { return s.answers.inUse() == 0 })
	}
}

func (m *answerMemory) inUse() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

func (m *answerMemory) holders(part []byte) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.parts[&part[0]].answers
}
