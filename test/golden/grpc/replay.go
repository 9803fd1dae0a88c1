package grpc

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// How much freedom the server has in time.
const (
	late         = 3 * time.Second  // after a frame's recorded time, for what need not come
	patience     = 20 * time.Second // after that, for what must: a busy machine is slow
	repeatWithin = 10 * time.Second // of what was not acknowledged
	probeAfter   = 15 * time.Second // of silence
	probeBefore  = 30 * time.Second
	eviction     = 6 * time.Second // after the probe
)

// repeated are the requests of the server that are made again without an
// acknowledgement.
var repeated = []string{grpcv2.NotifySubscriber, grpcv2.FuzzyWatchSync, grpcv2.FuzzyWatchChange}

// frame is what came on a stream.
type frame struct {
	grpctest.Frame
	body    any
	arrived time.Time
}

// connection is one connection of the transcript.
type connection struct {
	client   *grpctest.Client
	stream   *grpctest.Stream
	closed   bool
	held     []*frame          // pushes that came before their turn
	state    map[string]string // content of the last push, by what it is about
	acking   bool
	ids      map[string]bool
	lastSent time.Time
	answer   *frame
}

// receipt is a frame that came for a recorded one.
type receipt struct {
	frame    *frame
	recorded time.Duration
}

// Player replays transcripts against one server.
type Player struct {
	// GRPC is host:port, HTTP the base URL without a slash at the end.
	GRPC, HTTP string
}

// replay is one transcript being played.
type replay struct {
	player      Player
	t           testing.TB
	script      *Transcript
	compare     comparison
	fill        map[string]string // placeholders to values
	connections map[string]*connection
	received    map[string]receipt // by recorded requestId
	acked       map[string]bool    // recorded requestIds that the client acknowledges
	repeats     map[int]repeat     // by index of the message
	start       time.Time
	differences []string
}

// repeat says of a recorded frame which one it repeats.
type repeat struct {
	of    string // requestId
	first bool
}

// Play plays a transcript and returns the differences.
func (p Player) Play(t testing.TB, script *Transcript) []string {
	t.Helper()
	r := &replay{
		player: p, t: t, script: script, compare: newComparison(script.Volatile), fill: freshNames(),
		connections: map[string]*connection{}, received: map[string]receipt{}, acked: map[string]bool{},
	}
	for _, m := range script.Messages {
		if m.isAck() {
			r.acked[m.requestID()] = true
		}
	}
	r.repeats = r.findRepeats()
	r.start = time.Now()
	for n, m := range script.Messages {
		for _, d := range r.step(n, m) {
			r.differences = append(r.differences, m.describe()+": "+strings.TrimPrefix(d, ": "))
		}
		if behind := time.Now().Add(-m.at()); behind.After(r.start) {
			r.start = behind
		}
	}
	r.checkRest()
	return r.differences
}

func (r *replay) step(n int, m *Message) []string {
	switch m.Dir {
	case "client":
		return r.act(m)
	case "server":
		return r.expect(n, m)
	default:
		return r.observe(m)
	}
}

func (r *replay) due(m *Message) time.Time { return r.start.Add(m.at()) }

// freshNames returns values for the placeholders that no other replay uses.
func freshNames() map[string]string {
	letters := make([]byte, 10)
	for i := range letters {
		letters[i] = byte('a' + rand.IntN(26))
	}
	octet := func() int { return 100 + rand.IntN(151) }
	tail := string(letters)
	return map[string]string{
		"{svc}": "svc-" + tail, "{svc2}": "svtwo-" + tail, "{svc3}": "svthree-" + tail, "{grp}": "grp-" + tail, "{ns}": "ns-" + tail,
		"{ip}": fmt.Sprintf("10.%d.%d.%d", octet(), octet(), octet()),
	}
}

func (r *replay) filled(s string) string {
	for from, to := range r.fill {
		s = strings.ReplaceAll(s, from, to)
	}
	return s
}

func (r *replay) unfilled(s string) string {
	for from, to := range r.fill {
		s = strings.ReplaceAll(s, to, from)
	}
	return s
}

// decode decodes JSON with the values turned back into placeholders.
func (r *replay) decode(body []byte) any {
	dec := json.NewDecoder(strings.NewReader(r.unfilled(string(body))))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(body)
	}
	return v
}

// subject names what successive pushes are states of.
func subject(messageType string, body any) string {
	m, _ := body.(map[string]any)
	if info, ok := m["serviceInfo"].(map[string]any); ok {
		m = info
	}
	parts := []string{messageType}
	for _, name := range []string{"groupName", "name", "serviceKey", "groupKeyPattern", "syncType"} {
		parts = append(parts, fmt.Sprint(m[name]))
	}
	return strings.Join(parts, "|")
}

func (r *replay) findRepeats() map[int]repeat {
	type last struct {
		id, content string
		index       int
	}
	acked, lasts, repeats := map[string]bool{}, map[string]last{}, map[int]repeat{}
	for n, m := range r.script.Messages {
		switch {
		case m.isAck():
			acked[m.requestID()] = true
		case m.isFrame() && slices.Contains(repeated, m.Type):
			key, content := m.Conn+"|"+subject(m.Type, m.Body), r.compare.content(m.Body)
			if before, ok := lasts[key]; ok && before.content == content && !acked[before.id] {
				_, again := repeats[before.index]
				repeats[n] = repeat{before.id, !again}
			}
			lasts[key] = last{m.requestID(), content, n}
		}
	}
	return repeats
}

// act makes a step of the client.
func (r *replay) act(m *Message) []string {
	at, id := r.due(m), m.requestID()
	if strings.HasPrefix(id, "{rid") {
		got, came := r.received[id]
		if !came { // an optional push that did not come
			return nil
		}
		at = got.frame.arrived.Add(m.at() - got.recorded)
	}
	time.Sleep(time.Until(at))
	c := r.connections[m.Conn]
	switch m.Event {
	case "open":
		r.connections[m.Conn] = &connection{
			client: grpctest.Dial(r.t, r.player.GRPC), state: map[string]string{}, ids: map[string]bool{}, acking: true, lastSent: time.Now(),
		}
	case "close":
		c.close(m.How)
	case "new-stream":
		c.stream = nil
	case "http":
		return r.http(m)
	case "wait":
	default:
		r.send(c, m)
	}
	return nil
}

func (c *connection) close(how string) {
	switch how {
	case "half":
		c.stream.HalfClose()
	case "cancel":
		c.stream.Cancel()
	default:
		c.closed = true
		c.client.Close()
	}
}

// send sends a message, and keeps the answer of a unary call.
func (r *replay) send(c *connection, m *Message) {
	out := grpctest.Message{
		Head: grpcv2.Head{Type: r.filled(m.Type), ClientIP: m.ClientIP, Headers: maps.Clone(m.Headers)},
		Bare: m.NoMetadata, NoBody: m.NoBody,
	}
	for k, v := range out.Headers {
		out.Headers[k] = r.filled(v)
	}
	switch {
	case m.Raw != nil:
		out.Body = r.filled(*m.Raw)
	case !m.NoBody:
		b, _ := json.Marshal(m.Body) // of decoded JSON
		out.Body = r.filled(string(b))
		if got, ok := r.received[m.requestID()]; ok {
			out.Body = strings.ReplaceAll(out.Body, m.requestID(), requestIDOf(got.frame))
		}
	}
	c.lastSent = time.Now()
	if m.Stream == "bi" {
		if c.stream == nil {
			c.stream = c.client.Open(r.t)
		}
		c.stream.Send(r.t, out)
		return
	}
	got, err := c.client.Try(out)
	got.Err = err
	c.answer = r.frame(got)
}

func (r *replay) frame(f grpctest.Frame) *frame {
	return &frame{Frame: f, body: r.decode(f.Body), arrived: time.Now()}
}

func requestIDOf(f *frame) string {
	m, _ := f.body.(map[string]any)
	id, _ := m["requestId"].(string)
	return id
}

// acknowledge answers a frame that the transcript has no answer to.
func (r *replay) acknowledge(c *connection, f *frame, responseType string) {
	c.lastSent = time.Now()
	c.stream.Say(r.t, responseType, fmt.Sprintf(`{"resultCode":200,"errorCode":0,"success":true,"requestId":%q}`, requestIDOf(f)))
}

// http makes an HTTP request and compares its answer.
func (r *replay) http(m *Message) []string {
	status, body, err := r.httpCall(m)
	if err != nil {
		return []string{err.Error()}
	}
	if status != m.Expect.Status {
		return []string{fmt.Sprintf("status %d, want %d (%.200s)", status, m.Expect.Status, body)}
	}
	if m.Expect.Body != nil {
		return r.compare.differences(*m.Expect.Body, r.unfilled(string(body)), "", "")
	}
	return r.compare.differences(m.Expect.JSON, r.decode(body), "", "")
}

func (r *replay) httpCall(m *Message) (status int, body []byte, err error) {
	values := func(params map[string]string) url.Values {
		v := url.Values{}
		for name, value := range params {
			v.Set(name, r.filled(value))
		}
		return v
	}
	target := r.player.HTTP + r.filled(m.Path)
	if len(m.Query) > 0 {
		target += "?" + values(m.Query).Encode()
	}
	q, err := http.NewRequestWithContext(r.t.Context(), m.Method, target, strings.NewReader(values(m.Form).Encode()))
	if err != nil {
		return 0, nil, err
	}
	if len(m.Form) > 0 {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
