// Package grpctest is a client of the gRPC protocol for tests: it sends Payloads as
// they are given and hands out what comes, without the kindness of an SDK. A
// [Client] is safe for concurrent use.
package grpctest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// Patience is how long a client waits for what must come.
const Patience = 10 * time.Second

// Frame is a message of the server, or the end of a stream.
type Frame struct {
	Type, ClientIP string
	Headers        map[string]string
	Body           []byte
	// Err is io.EOF when the stream ended with OK, a status error when it ended
	// with another status, nil for messages.
	Err error
}

// Members decodes the body as a JSON object.
func (f Frame) Members(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(f.Body, &m); err != nil {
		t.Fatalf("%s: %q: %v", f.Type, f.Body, err)
	}
	return m
}

// Message is a message to the server.
type Message struct {
	grpcv2.Head
	Body string
	// Bare leaves the metadata out, NoBody the body.
	Bare, NoBody bool
}

func (m *Message) encode() []byte {
	head := &m.Head
	if m.Bare {
		head = &grpcv2.Head{}
	}
	b := grpcv2.AppendPayload(nil, head, []byte(m.Body))
	if m.NoBody {
		b = b[:len(b)-len(grpcv2.AppendPayload(nil, &grpcv2.Head{}, []byte(m.Body)))]
	}
	return b
}

// Client is one connection.
type Client struct {
	conn *grpc.ClientConn
}

// Dial connects to a server. The connection is closed with the test.
func Dial(t testing.TB, address string) *Client {
	t.Helper()
	return dial(t, address, insecure.NewCredentials())
}

// DialTLS connects to a server over TLS. The connection is closed with the test.
func DialTLS(t testing.TB, address string, settings *tls.Config) *Client {
	t.Helper()
	return dial(t, address, credentials.NewTLS(settings))
}

func dial(t testing.TB, address string, creds credentials.TransportCredentials) *Client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(creds), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{conn}
	t.Cleanup(c.Close)
	return c
}

// Close closes the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Invoke makes a unary call of any method and returns its answer or the error of
// the call.
func (c *Client) Invoke(ctx context.Context, method string, m Message) (Frame, error) {
	var answer []byte
	if err := c.conn.Invoke(ctx, method, m.encode(), &answer); err != nil {
		return Frame{}, err
	}
	return frameOf(answer)
}

// Try makes a unary call, within the time that the client is patient.
func (c *Client) Try(m Message) (Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return c.Invoke(ctx, "/"+grpcv2.UnaryService+"/"+grpcv2.UnaryMethod, m)
}

// Call makes a unary call that must be answered.
func (c *Client) Call(t testing.TB, requestType, body string) Frame {
	t.Helper()
	answer, err := c.Try(Message{Head: grpcv2.Head{Type: requestType, ClientIP: "127.0.0.1"}, Body: body})
	if err != nil {
		t.Fatalf("%s: %v", requestType, err)
	}
	return answer
}

// Stream is one stream of a connection.
type Stream struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
	sendMu sync.Mutex
	frames chan Frame // the last one has Err
}

// streamBuffer is how many frames a stream holds that a test has not looked at;
// then it reads no more.
const streamBuffer = 4096

// Open opens a stream. Nothing is sent for it before the first message.
func (c *Client) Open(t testing.TB) *Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := c.conn.NewStream(ctx, desc, "/"+grpcv2.StreamService+"/"+grpcv2.StreamMethod)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &Stream{stream: stream, cancel: cancel, frames: make(chan Frame, streamBuffer)}
	t.Cleanup(cancel)
	go s.read(ctx)
	return s
}

func (s *Stream) read(ctx context.Context) {
	for {
		var b []byte
		err := s.stream.RecvMsg(&b)
		f := Frame{Err: err}
		if err == nil {
			f, f.Err = frameOf(b)
		}
		if f.Err != nil { // there is room for it, or nobody looks
			select {
			case s.frames <- f:
			default:
			}
			return
		}
		select {
		case s.frames <- f:
		case <-ctx.Done():
		}
	}
}

// Send sends a message.
func (s *Stream) Send(t testing.TB, m Message) {
	t.Helper()
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	if err := s.stream.SendMsg(m.encode()); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("send %s: %v", m.Type, err)
	}
}

// Say sends a message of a type with a JSON body.
func (s *Stream) Say(t testing.TB, messageType, body string) {
	t.Helper()
	s.Send(t, Message{Head: grpcv2.Head{Type: messageType, ClientIP: "127.0.0.1"}, Body: body})
}

// Frames are what the server sends; the last one is the end of the stream.
func (s *Stream) Frames() <-chan Frame { return s.frames }

// Next returns the next frame, which must come.
func (s *Stream) Next(t testing.TB) Frame {
	t.Helper()
	select {
	case f := <-s.frames:
		return f
	case <-time.After(Patience):
		t.Fatalf("nothing came on the stream for %v", Patience)
		return Frame{}
	}
}

// Expect returns the next frame, which must be of a type.
func (s *Stream) Expect(t testing.TB, messageType string) Frame {
	t.Helper()
	f := s.Next(t)
	if f.Type != messageType {
		t.Fatalf("got %s %s %v, want %s", f.Type, f.Body, f.Err, messageType)
	}
	return f
}

// HalfClose says that the client sends no more.
func (s *Stream) HalfClose() { _ = s.stream.CloseSend() }

// Cancel cancels the stream.
func (s *Stream) Cancel() { s.cancel() }

func frameOf(b []byte) (Frame, error) {
	var p grpcv2.Payload
	if err := p.Unmarshal(b); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: p.Type, ClientIP: p.ClientIP, Body: p.Body, Headers: map[string]string{}}
	for k, v := range p.Headers() {
		f.Headers[k] = v
	}
	return f, nil
}

// StatusOf returns the name of the status that an error is, OK for io.EOF.
func StatusOf(err error) string {
	if errors.Is(err, io.EOF) {
		return "OK"
	}
	return status.Code(err).String()
}

// rawCodec moves messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
