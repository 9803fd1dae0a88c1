package grpc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// Transcript is one recording.
type Transcript struct {
	ID       string   `json:"id"`
	About    string   `json:"about"`
	Volatile []string `json:"volatile"`
	// Loose: time or chance decides what comes; to be read, not compared.
	Loose    bool       `json:"loose"`
	Messages []*Message `json:"messages"`
}

// Message is one step of the client, or what the server was seen to do.
type Message struct {
	AtMillis   int64             `json:"at_ms"`
	Conn       string            `json:"conn"`
	Dir        string            `json:"dir"`    // client, server or note
	Stream     string            `json:"stream"` // unary or bi
	Type       string            `json:"type"`
	Headers    map[string]string `json:"headers"`
	ClientIP   string            `json:"clientIp"`
	Body       any               `json:"body"`
	Raw        *string           `json:"raw"`
	NoBody     bool              `json:"noBody"`
	NoMetadata bool              `json:"noMetadata"`
	Bytes      int               `json:"bytes"`
	Event      string            `json:"event"`
	How        string            `json:"how"`
	Status     string            `json:"status"`

	// Of an HTTP request: Method is its verb.
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Query  map[string]string `json:"query"`
	Form   map[string]string `json:"form"`
	Expect *struct {
		Status int     `json:"status"`
		JSON   any     `json:"json"`
		Body   *string `json:"body"`
	} `json:"expect"`
}

// Load reads the recordings of a folder, by their IDs.
func Load(dir string) ([]*Transcript, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var list []*Transcript
	for _, file := range files {
		t, err := load(file)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

func load(file string) (*Transcript, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.UseNumber()
	t := &Transcript{}
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Replayable reports whether the transcript can be played as it stands.
func (t *Transcript) Replayable() bool {
	return !t.Loose && !slices.ContainsFunc(t.Messages, func(m *Message) bool {
		return m.Stream != "" && m.Method != "" || m.Bytes > 0 || m.Event == "second-stream"
	})
}

// Disturbs reports whether playing the transcript disturbs other clients.
func (t *Transcript) Disturbs() bool {
	return slices.ContainsFunc(t.Messages, func(m *Message) bool { return strings.Contains(m.Path, "reloadCurrent") })
}

// Length is how long the transcript takes.
func (t *Transcript) Length() time.Duration { return t.Messages[len(t.Messages)-1].at() }

func (m *Message) at() time.Duration { return time.Duration(m.AtMillis) * time.Millisecond }

// member returns a member of the body; nil when there is none.
func (m *Message) member(name string) any {
	object, _ := m.Body.(map[string]any)
	return object[name]
}

// requestID returns the requestId of the body; empty when there is none.
func (m *Message) requestID() string {
	id, _ := m.member("requestId").(string)
	return id
}

// isFrame reports whether the message is one that the server sent on a stream.
func (m *Message) isFrame() bool { return m.Dir == "server" && m.Stream == "bi" && m.Event == "" }

// isAck reports whether the client acknowledges a request of the server.
func (m *Message) isAck() bool {
	return m.Dir == "client" && m.requestID() != "" && number(m.member("resultCode")) == grpcv2.ResultSuccess
}

// passive reports whether the message needs no new cause: what the server does,
// and acknowledgements of it.
func (m *Message) passive() bool { return m.Dir == "server" || m.isAck() }

func number(v any) int64 {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return i
}

// describe names a message for a report.
func (m *Message) describe() string {
	words := []string{fmt.Sprintf("%d ms", m.AtMillis)}
	for _, word := range []string{m.Conn, m.Stream, m.Type, m.Event, m.Path} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
