package transporttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// The paths of the two methods.
const (
	UnaryPath  = "/" + grpcv2.UnaryService + "/" + grpcv2.UnaryMethod
	StreamPath = "/" + grpcv2.StreamService + "/" + grpcv2.StreamMethod
)

// Raw is a client that says what it is told, frame by frame, and notes what the
// server says. One goroutine may speak while another reads.
type Raw struct {
	*http2.Framer
	replies *http2.Framer // of the goroutine that reads
	nc      net.Conn
	patient time.Duration // how long each frame is waited for; 0: for ever
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder

	answers  map[uint32]*Answer
	fields   []hpack.HeaderField
	pings    int
	acks     int // of settings
	Settings map[http2.SettingID]uint32
	// GoAway are the codes of what the server said before it left; Ended is why
	// nothing comes any more.
	GoAway []http2.ErrCode
	LastID uint32
	Ended  error
}

// Answer is what the server said on one stream.
type Answer struct {
	HTTP, Status, Message string // of the headers
	Data                  []byte
	Frames                int // of DATA
	Over                  bool
	Reset                 string // code of RST_STREAM, empty without one
	Fields                map[string]string
}

// String is the answer in a line.
func (a *Answer) String() string {
	var words []string
	add := func(format string, value string) {
		if value != "" {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	add("HTTP %s", a.HTTP)
	add("status %s", a.Status)
	if len(a.Data) > 0 {
		words = append(words, fmt.Sprintf("%d messages", len(messages(a.Data))))
	}
	add("reset %s", a.Reset)
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// messages splits DATA into messages of gRPC.
func messages(b []byte) (list [][]byte) {
	for len(b) >= 5 {
		n := min(int(binary.BigEndian.Uint32(b[1:])), len(b)-5)
		list = append(list, b[5:5+n])
		b = b[5+n:]
	}
	return list
}

// NewRaw returns a client on a connection. It has said nothing.
func NewRaw(t testing.TB, nc net.Conn) *Raw {
	t.Helper()
	t.Cleanup(func() { _ = nc.Close() })
	r := &Raw{nc: nc, Framer: http2.NewFramer(nc, nc), replies: http2.NewFramer(nc, nil), answers: map[uint32]*Answer{}, Settings: map[http2.SettingID]uint32{}}
	r.AllowIllegalWrites = true
	r.encoder = hpack.NewEncoder(&r.block)
	r.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) { r.fields = append(r.fields, f) })
	return r
}

// DialRaw connects to a server and says what every client says. What must come may take
// [grpctest.Patience], frame by frame.
func DialRaw(t testing.TB, address string) *Raw {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRaw(t, nc)
	r.patient = grpctest.Patience
	r.extend()
	r.Preface()
	return r
}

// Preface says how every client begins. As with all that is said, an error will be
// seen by who reads.
func (r *Raw) Preface(settings ...http2.Setting) {
	r.Bytes(http2.ClientPreface)
	_ = r.WriteSettings(settings...)
}

// Bytes writes bytes as they are.
func (r *Raw) Bytes(s string) { _, _ = io.WriteString(r.nc, s) }

// Close closes the connection.
func (r *Raw) Close() { _ = r.nc.Close() }

// HalfClose says that nothing more will be said.
func (r *Raw) HalfClose() {
	if half, ok := r.nc.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// Request are the headers of a request for a path. Further fields are given as
// name and value; a name that a request has anyway takes its place, and without
// a value takes it away.
func Request(path string, fields ...string) []hpack.HeaderField {
	list := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "test"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}
	for n := 0; n < len(fields); n += 2 {
		f := hpack.HeaderField{Name: fields[n], Value: fields[n+1]}
		i := slices.IndexFunc(list, func(have hpack.HeaderField) bool { return have.Name == f.Name })
		switch {
		case i < 0:
			list = append(list, f)
		case f.Value == "":
			list = slices.Delete(list, i, i+1)
		default:
			list[i] = f
		}
	}
	return list
}

// Block encodes headers.
func (r *Raw) Block(fields []hpack.HeaderField) []byte {
	r.block.Reset()
	for _, f := range fields {
		_ = r.encoder.WriteField(f) // into memory, which does not fail
	}
	return bytes.Clone(r.block.Bytes())
}

// Open sends headers.
func (r *Raw) Open(id uint32, fields []hpack.HeaderField) { r.open(id, fields, false) }

// OpenAndEnd sends headers that nothing follows.
func (r *Raw) OpenAndEnd(id uint32, fields []hpack.HeaderField) { r.open(id, fields, true) }

func (r *Raw) open(id uint32, fields []hpack.HeaderField, end bool) {
	_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.Block(fields), EndHeaders: true, EndStream: end})
}

// Message frames a Payload as gRPC does.
func Message(kind, body string) []byte {
	p := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: kind, ClientIP: "127.0.0.1"}, []byte(body))
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(p))), p...)
}

// Call makes a unary call.
func (r *Raw) Call(id uint32, body string) {
	r.Open(id, Request(UnaryPath))
	_ = r.WriteData(id, true, Message("T", body))
}

// Answer returns what was said on a stream so far.
func (r *Raw) Answer(id uint32) *Answer {
	a := r.answers[id]
	if a == nil {
		a = &Answer{Fields: map[string]string{}}
		r.answers[id] = a
	}
	return a
}

// Until reads until something holds, or nothing more comes. It reports whether it
// holds.
func (r *Raw) Until(ok func() bool) bool {
	for !ok() {
		if r.Ended != nil {
			return false
		}
		r.extend()
		f, err := r.ReadFrame()
		if err != nil {
			r.Ended = err
			continue
		}
		r.note(f)
	}
	return true
}

// extend gives what is said and read next its time. A connection that is closed says so
// to who reads.
func (r *Raw) extend() {
	if r.patient > 0 {
		_ = r.nc.SetDeadline(time.Now().Add(r.patient))
	}
}

// Wait reads until a stream is over, and returns what was said on it.
func (r *Raw) Wait(id uint32) *Answer {
	r.Until(func() bool { return r.Answer(id).Over })
	return r.Answer(id)
}

// Fence reads until the server has answered a ping that is sent now.
func (r *Raw) Fence() bool {
	want := r.pings + 1
	_ = r.WritePing(false, [8]byte{'f', 'e', 'n', 'c', 'e'})
	return r.Until(func() bool { return r.pings >= want })
}

// WaitEnd reads until nothing more comes.
func (r *Raw) WaitEnd(t testing.TB) {
	t.Helper()
	r.Until(func() bool { return false })
	var timeout net.Error
	if errors.As(r.Ended, &timeout) && timeout.Timeout() {
		t.Errorf("the server did not end the connection: %v", r.Ended)
	}
}

// note notes what a frame says, and answers what must be answered.
func (r *Raw) note(f http2.Frame) {
	a := r.Answer(f.Header().StreamID)
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			r.acks++
			return
		}
		_ = f.ForeachSetting(func(s http2.Setting) error { r.Settings[s.ID] = s.Val; return nil })
		_ = r.replies.WriteSettingsAck()
	case *http2.PingFrame:
		if f.IsAck() {
			r.pings++
		} else {
			_ = r.replies.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		r.GoAway, r.LastID = append(r.GoAway, f.ErrCode), f.LastStreamID
	case *http2.HeadersFrame:
		r.headers(a, f)
	case *http2.DataFrame:
		a.Data = append(a.Data, f.Data()...)
		a.Frames++
		a.Over = a.Over || f.StreamEnded()
	case *http2.RSTStreamFrame:
		if !a.Over || f.ErrCode != http2.ErrCodeNo { // that is only to stop the client
			a.Reset = f.ErrCode.String()
		}
		a.Over = true
	}
}

func (r *Raw) headers(a *Answer, f *http2.HeadersFrame) {
	r.fields = nil
	if _, err := r.decoder.Write(f.HeaderBlockFragment()); err != nil {
		r.Ended = err
		return
	}
	for _, f := range r.fields {
		a.Fields[f.Name] = f.Value
		switch f.Name {
		case ":status":
			a.HTTP = f.Value
		case "grpc-status":
			a.Status = f.Value
		case "grpc-message":
			a.Message = f.Value
		}
	}
	a.Over = a.Over || f.StreamEnded()
}
