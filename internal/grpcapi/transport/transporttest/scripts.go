package transporttest

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// script is what a client says that goes by the letter, or against it, and what it
// gets for that.
type script struct {
	name string
	say  func(*Raw)
	// stream is the one whose answer counts; 0: the connection must end, and ours
	// says why.
	stream uint32
	want   string
	// theirs is what grpc-go says when that is another answer, why the reason why
	// ours is the better one.
	theirs, why string
}

const (
	// whole is the answer to a call that is served, nothing one to a call that is
	// not.
	whole, nothing = "HTTP 200, status 0, 1 messages", "nothing"

	lax       = "HTTP/2 wants such a request reset, and grpc-go does not look"
	closes    = "grpc-go closes the connection at a second HEADERS of a stream, which HTTP/2 allows"
	refusable = "it is gRPC's name for what happened, and no fault of the framing"
)

// Compare has the same clients say the same to two transports, and compares what
// they get, answer by answer.
func Compare(t *testing.T, ours, theirs Start) {
	limits := Limits{Conns: 1000, ConnsPerIP: 1000, Message: 64 << 10, Streams: 16}
	a, b := ours(t, &handler{}, limits), theirs(t, &handler{}, limits)
	for _, list := range [][]script{callScripts(), headerScripts(), streamScripts(), windowScripts(), connScripts()} {
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				if got := s.play(t, a.Address); got != s.want {
					t.Errorf("ours: got %s, want %s", got, s.want)
				}
				want := s.want
				if s.why != "" {
					want = s.theirs
				}
				// grpc-go ends a connection nearly always without a word.
				if got := s.play(t, b.Address); got != want && s.stream != 0 {
					t.Errorf("theirs: got %s, want %s", got, want)
				}
			})
		}
	}
}

// play plays a script and returns what the client got.
func (s *script) play(t *testing.T, address string) string {
	t.Helper()
	r := DialRaw(t, address)
	s.say(r)
	if s.stream != 0 {
		return r.Wait(s.stream).String()
	}
	r.HalfClose()
	r.WaitEnd(t)
	if len(r.GoAway) > 0 {
		return "GOAWAY " + r.GoAway[len(r.GoAway)-1].String()
	}
	return "closed"
}

// requestWith makes a call with other headers than usual.
func requestWith(fields ...string) func(*Raw) {
	return func(r *Raw) {
		r.Open(1, Request(UnaryPath, fields...))
		_ = r.WriteData(1, true, Message("T", "{}"))
	}
}

// frame writes a frame as it is.
func frame(kind http2.FrameType, flags http2.Flags, id uint32, payload string) func(*Raw) {
	return func(r *Raw) { _ = r.WriteRawFrame(kind, flags, id, []byte(payload)) }
}

// data makes a call of these bytes.
func data(parts ...[]byte) func(*Raw) {
	return func(r *Raw) {
		r.Open(1, Request(UnaryPath))
		for n, p := range parts {
			_ = r.WriteData(1, n == len(parts)-1, p)
		}
	}
}

func singles(b []byte) (list [][]byte) {
	for i := range b {
		list = append(list, b[i:i+1])
	}
	return list
}

// callScripts are calls, well made or not, up to the end of their messages.
func callScripts() []script {
	return []script{
		{name: "a call", stream: 1, say: func(r *Raw) { r.Call(1, "{}") }, want: whole},
		{name: "a call byte by byte", stream: 1, say: data(singles(Message("T", "{}"))...), want: whole},
		{name: "a call that ends apart", stream: 1, say: data(Message("T", "{}"), nil), want: whole},
		{name: "a call that ends in pieces", stream: 1, say: data(Message("T", "{}")[:7], Message("T", "{}")[7:], nil), want: whole},
		{name: "an empty message", stream: 1, say: data(make([]byte, 5)), want: whole},
		{name: "no message", stream: 1, say: data(nil), want: "HTTP 200, status 13"},
		{name: "no DATA", stream: 1, say: func(r *Raw) { r.OpenAndEnd(1, Request(UnaryPath)) }, want: "HTTP 200, status 13"},
		{name: "two messages", stream: 1, say: data(Message("T", "{}"), Message("T", "{}")), want: "HTTP 200, status 13"},
		{name: "two messages in one", stream: 1, say: data(append(Message("T", "{}"), Message("T", "{}")...)), want: "HTTP 200, status 13"},
		{name: "half a message", stream: 1, say: data(Message("T", "{}")[:9]), want: "HTTP 200, status 13"},
		{name: "half a prefix", stream: 1, say: data([]byte{0, 0}), want: "HTTP 200, status 13"},
		{name: "a message too large", stream: 1, say: data([]byte{0, 0, 1, 0, 1}), want: "HTTP 200, status 8"},
		{name: "a broken message", stream: 1, say: data([]byte{0, 0, 0, 0, 1, 0xff}), want: "HTTP 200, status 13"},
		{name: "a compressed message", stream: 1, say: data([]byte{1, 0, 0, 0, 0}), want: "HTTP 200, status 13"},
		{name: "a flag that is unknown", stream: 1, say: data([]byte{7, 0, 0, 0, 0}), want: "HTTP 200, status 13"},
		{name: "trailers of the client", stream: 1, want: whole, say: func(r *Raw) {
			r.Open(1, Request(UnaryPath))
			_ = r.WriteData(1, false, Message("T", "{}"))
			r.OpenAndEnd(1, nil)
		}, theirs: nothing, why: closes},
		{name: "padding", stream: 1, want: whole, say: func(r *Raw) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.Block(Request(UnaryPath)), EndHeaders: true, PadLength: 200})
			_ = r.WriteDataPadded(1, true, Message("T", "{}"), make([]byte, 255))
		}},
		{name: "CONTINUATION", stream: 1, want: whole, say: func(r *Raw) {
			block := r.Block(Request(UnaryPath))
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:1]})
			_ = r.WriteContinuation(1, false, block[1:20])
			_ = r.WriteContinuation(1, false, nil)
			_ = r.WriteContinuation(1, true, block[20:])
			_ = r.WriteData(1, true, Message("T", "{}"))
		}},
		{name: "priorities", stream: 3, want: whole, say: func(r *Raw) {
			_ = r.WritePriority(7, http2.PriorityParam{StreamDep: 1, Weight: 3})
			_ = r.WriteHeaders(http2.HeadersFrameParam{
				StreamID: 3, BlockFragment: r.Block(Request(UnaryPath)), EndHeaders: true,
				Priority: http2.PriorityParam{StreamDep: 1, Exclusive: true, Weight: 9},
			})
			_ = r.WriteData(3, true, Message("T", "{}"))
			_ = r.WritePriority(3, http2.PriorityParam{StreamDep: 5})
		}},
		{name: "unknown frames", stream: 1, want: whole, say: func(r *Raw) {
			frame(0xbb, 0xff, 0, "anything")(r)
			frame(0xbb, 0xff, 9, "")(r)
			r.Call(1, "{}")
		}},
		{name: "unknown settings", stream: 1, want: whole, say: func(r *Raw) {
			_ = r.WriteSettings(http2.Setting{ID: 0xabc, Val: 1 << 31}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			r.Call(1, "{}")
		}},
		{name: "GOAWAY of the client", stream: 1, want: whole, say: func(r *Raw) {
			_ = r.WriteGoAway(0, http2.ErrCodeNo, nil)
			r.Call(1, "{}")
		}},
	}
}

// headerScripts are calls with headers that matter.
func headerScripts() []script {
	return []script{
		{name: "an unknown method", stream: 1, say: requestWith(":path", "/Request/nothing"), want: "HTTP 200, status 12"},
		{name: "an unknown service", stream: 1, say: requestWith(":path", "/Nothing/request"), want: "HTTP 200, status 12"},
		{name: "a path that is none", stream: 1, say: requestWith(":path", "nothing"), want: "HTTP 200, status 12"},
		{name: "GET", stream: 1, say: requestWith(":method", "GET"), want: "HTTP 405, status 13"},
		{name: "another content type", stream: 1, say: requestWith("content-type", "application/json"), want: "HTTP 415, status 3"},
		{name: "gRPC's name in another", stream: 1, say: requestWith("content-type", "application/grpc-web"), want: "HTTP 415, status 3"},
		{name: "no content type", stream: 1, say: requestWith("content-type", ""), want: "HTTP 415, status 3"},
		{name: "the encoding in the content type", stream: 1, say: requestWith("content-type", "application/grpc+proto"), want: whole},
		{name: "a parameter in the content type", stream: 1, say: requestWith("content-type", "application/grpc;x=y"), want: whole},
		{name: "gzip", stream: 1, say: requestWith("grpc-encoding", "gzip"), want: "HTTP 200, status 12"},
		{name: "identity", stream: 1, say: requestWith("grpc-encoding", "identity", "grpc-accept-encoding", "gzip,identity"), want: whole},
		{name: "a timeout", stream: 1, say: requestWith("grpc-timeout", "59S"), want: whole},
		{name: "the longest timeout", stream: 1, say: requestWith("grpc-timeout", "99999999H"), want: whole},
		{name: "a timeout that has passed", stream: 1, say: requestWith("grpc-timeout", "0n"), want: "HTTP 200, status 4"},
		{name: "a timeout without a number", stream: 1, say: requestWith("grpc-timeout", "S"), want: "HTTP 400, status 13"},
		{name: "a timeout without a unit", stream: 1, say: requestWith("grpc-timeout", "12"), want: "HTTP 400, status 13"},
		{name: "a timeout below 0", stream: 1, say: requestWith("grpc-timeout", "-1S"), want: "HTTP 400, status 13"},
		{name: "a timeout too long", stream: 1, say: requestWith("grpc-timeout", "123456789S"), want: "HTTP 400, status 13"},
		{name: "host", stream: 1, say: requestWith(":authority", "", "host", "test"), want: whole},
		{name: "neither host nor authority", stream: 1, say: requestWith(":authority", ""), want: "HTTP 400, status 13"},
		{name: "a field about the connection", stream: 1, say: requestWith("connection", "keep-alive"), want: "reset PROTOCOL_ERROR"},
		{name: "a name in capitals", stream: 1, say: requestWith("Name", "x"), want: "reset PROTOCOL_ERROR"},
		{name: "a value with a line feed", stream: 1, say: requestWith("name", "x\ny"), want: "reset PROTOCOL_ERROR"},
		{name: "an unknown pseudo-header", stream: 1, say: requestWith(":nothing", "x"), want: "reset PROTOCOL_ERROR"},
		{name: "a pseudo-header that comes late", stream: 1, want: "reset PROTOCOL_ERROR", say: func(r *Raw) {
			list := Request(UnaryPath)
			list[0], list[5] = list[5], list[0]
			r.OpenAndEnd(1, list)
		}},
		{name: "a pseudo-header that comes twice", stream: 1, want: "reset PROTOCOL_ERROR", say: func(r *Raw) {
			r.OpenAndEnd(1, append(Request(UnaryPath)[:1], Request(UnaryPath)...))
		}},
		{name: "no path", stream: 1, say: requestWith(":path", ""), want: "reset PROTOCOL_ERROR", theirs: "HTTP 200, status 12", why: lax},
		{name: "no scheme", stream: 1, say: requestWith(":scheme", ""), want: "reset PROTOCOL_ERROR", theirs: whole, why: lax},
		{name: "te without trailers", stream: 1, say: requestWith("te", "gzip"), want: "reset PROTOCOL_ERROR", theirs: whole, why: lax},
		{name: "a length that is not right", stream: 1, say: requestWith("content-length", "3"), want: "reset PROTOCOL_ERROR", theirs: whole, why: lax},
		{name: "a length that is right", stream: 1, want: whole, say: func(r *Raw) {
			r.Open(1, Request(UnaryPath, "content-length", "5"))
			_ = r.WriteData(1, true, make([]byte, 5))
		}},
		{name: "a header list too large", stream: 1, want: "HTTP 431, status 8", say: func(r *Raw) {
			// These letters take five bits, so that only the list is too large, and not its
			// encoded form.
			block := r.Block(Request(UnaryPath, "name", strings.Repeat("a", 40<<10), "other", strings.Repeat("e", 40<<10)))
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:16<<10], EndStream: true})
			for block = block[16<<10:]; len(block) > 16<<10; block = block[16<<10:] {
				_ = r.WriteContinuation(1, false, block[:16<<10])
			}
			_ = r.WriteContinuation(1, true, block)
		}, theirs: "reset FRAME_SIZE_ERROR", why: refusable},
		{name: "a bomb of references", stream: 1, want: "HTTP 431, status 8", say: func(r *Raw) {
			block := r.Block(Request(UnaryPath, "name", strings.Repeat("x", 3000)))
			const newest = 0x80 | 62
			block = append(block, bytes.Repeat([]byte{newest}, 10_000)...)
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true, EndStream: true})
		}, theirs: "reset FRAME_SIZE_ERROR", why: refusable},
	}
}

// streamScripts are about the life of streams.
func streamScripts() []script {
	return []script{
		{name: "a stream that is ended by the client", stream: 1, say: func(r *Raw) { r.OpenAndEnd(1, Request(StreamPath)) }, want: "HTTP 200, status 0"},
		{name: "a broken message on a stream", stream: 1, want: "HTTP 200, status 13", say: func(r *Raw) {
			r.Open(1, Request(StreamPath))
			_ = r.WriteData(1, false, []byte{0, 0, 0, 0, 1, 0xff})
		}},
		{name: "half a message on a stream", stream: 1, want: "HTTP 200, status 13", say: func(r *Raw) {
			r.Open(1, Request(StreamPath))
			_ = r.WriteData(1, true, Message("T", "{}")[:9])
		}},
		{name: "a message too large on a stream", stream: 1, want: "HTTP 200, status 8", say: func(r *Raw) {
			r.Open(1, Request(StreamPath))
			_ = r.WriteData(1, false, []byte{0, 0xff, 0, 0, 0})
		}},
		{name: "DATA after the end", stream: 1, want: "reset STREAM_CLOSED", say: func(r *Raw) {
			r.Open(1, Request(UnaryPath))
			_ = r.WriteData(1, true, Message(blocking, "{}"))
			_ = r.WriteData(1, false, []byte("more"))
		}},
		{name: "HEADERS after the end", stream: 1, want: "reset STREAM_CLOSED", say: func(r *Raw) {
			r.Open(1, Request(UnaryPath))
			_ = r.WriteData(1, true, Message(blocking, "{}"))
			r.OpenAndEnd(1, nil)
		}, theirs: nothing, why: closes},
		{name: "trailers that do not end", stream: 1, want: "reset PROTOCOL_ERROR", say: func(r *Raw) {
			r.Open(1, Request(UnaryPath))
			r.Open(1, nil)
		}, theirs: nothing, why: closes},
		{name: "one stream too many", stream: 33, want: "reset REFUSED_STREAM", say: func(r *Raw) {
			for id := uint32(1); id <= 33; id += 2 {
				r.Open(id, Request(StreamPath))
			}
		}},
		{name: "a stream after others were reset", stream: 101, want: whole, say: func(r *Raw) {
			for id := uint32(1); id <= 99; id += 2 {
				r.Open(id, Request(StreamPath))
				_ = r.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			r.Call(101, "{}")
		}},
		{name: "a stream that depends on itself", stream: 1, want: "reset PROTOCOL_ERROR", say: func(r *Raw) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{
				StreamID: 1, BlockFragment: r.Block(Request(UnaryPath)), EndHeaders: true, Priority: http2.PriorityParam{StreamDep: 1, Weight: 9},
			})
			_ = r.WriteData(1, true, Message("T", "{}"))
		}, theirs: whole, why: lax},
		{name: "health", stream: 1, want: whole, say: func(r *Raw) {
			r.Open(1, Request("/grpc.health.v1.Health/Check"))
			_ = r.WriteData(1, true, make([]byte, 5))
		}},
		{name: "health of a service", stream: 1, want: whole, say: func(r *Raw) {
			r.Open(1, Request("/grpc.health.v1.Health/Check"))
			_ = r.WriteData(1, true, append([]byte{0, 0, 0, 0, 2 + byte(len(grpcv2.UnaryService)), 1<<3 | 2, byte(len(grpcv2.UnaryService))}, grpcv2.UnaryService...))
		}},
		{name: "health of a service that is unknown", stream: 1, want: "HTTP 200, status 5", say: func(r *Raw) {
			r.Open(1, Request("/grpc.health.v1.Health/Check"))
			_ = r.WriteData(1, true, []byte{0, 0, 0, 0, 3, 1<<3 | 2, 1, 'x'})
		}},
	}
}

// windowScripts are about flow control.
func windowScripts() []script {
	return []script{
		{name: "no window at first", stream: 1, want: whole, say: func(r *Raw) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			r.Call(1, "{}")
			r.Fence()
			_ = r.WriteWindowUpdate(1, 3)
			r.Fence()
			_ = r.WriteWindowUpdate(1, 1000)
		}},
		{name: "a window that opens for all", stream: 1, want: whole, say: func(r *Raw) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			r.Call(1, "{}")
			r.Fence()
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		}},
		{name: "a window below 0", stream: 3, want: whole, say: func(r *Raw) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
			r.Call(3, "{}")
			r.Until(func() bool { return len(r.Answer(3).Data) == 10 })
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			_ = r.WriteWindowUpdate(3, 11)
			r.Until(func() bool { return len(r.Answer(3).Data) == 11 })
			_ = r.WriteWindowUpdate(3, 1000)
		}},
		{name: "a window of 0 more", stream: 1, want: "reset PROTOCOL_ERROR", say: func(r *Raw) {
			r.Open(1, Request(StreamPath))
			_ = r.WriteWindowUpdate(1, 0)
		}},
		{name: "a window too large", stream: 1, want: "reset FLOW_CONTROL_ERROR", say: func(r *Raw) {
			r.Open(1, Request(StreamPath))
			_ = r.WriteWindowUpdate(1, 1<<31-1)
			r.Fence()
			r.HalfClose()
		}, theirs: nothing, why: "grpc-go lets it be, and HTTP/2 wants the stream reset"},
		{name: "a message larger than the window", stream: 1, want: whole, say: func(r *Raw) {
			r.Open(1, Request(UnaryPath))
			m := Message("T", strings.Repeat("x", 60<<10))
			_ = r.WriteData(1, false, m[:16<<10])
			_ = r.WriteData(1, false, m[16<<10:32<<10])
			_ = r.WriteData(1, false, m[32<<10:48<<10])
			r.Fence()
			_ = r.WriteData(1, true, m[48<<10:])
		}},
	}
}

// connScripts are what ends a connection.
func connScripts() []script {
	return []script{
		{name: "DATA of no stream", say: frame(http2.FrameData, 0, 0, "x"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "DATA of a stream to come", say: frame(http2.FrameData, 0, 5, "x"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "RST_STREAM of a stream to come", say: frame(http2.FrameRSTStream, 0, 5, "\x00\x00\x00\x00"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "WINDOW_UPDATE of a stream to come", say: frame(http2.FrameWindowUpdate, 0, 5, "\x00\x00\x00\x01"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "HEADERS of no stream", say: frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, "\x82"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "HEADERS of a server's stream", say: func(r *Raw) { r.Open(2, Request(UnaryPath)) }, want: "GOAWAY PROTOCOL_ERROR"},
		{name: "HEADERS of a stream before", say: func(r *Raw) {
			r.Call(3, "{}")
			r.Call(1, "{}")
		}, want: "GOAWAY STREAM_CLOSED"},
		{name: "PADDING without room", say: frame(http2.FrameData, http2.FlagDataPadded, 1, "\x05x"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "HEADERS with padding without room", say: frame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, "\x05\x82"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "a block that is no HPACK", say: frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, "\x80"), want: "GOAWAY COMPRESSION_ERROR"},
		{name: "a block that is cut off", say: frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, "\x00\x05ab"), want: "GOAWAY COMPRESSION_ERROR"},
		{name: "CONTINUATION of nothing", say: frame(http2.FrameContinuation, 0, 1, "\x82"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "a frame within a block", say: func(r *Raw) {
			frame(http2.FrameHeaders, 0, 1, "\x82")(r)
			_ = r.WritePing(false, [8]byte{})
		}, want: "GOAWAY PROTOCOL_ERROR"},
		{name: "another stream's CONTINUATION", say: func(r *Raw) {
			frame(http2.FrameHeaders, 0, 1, "\x82")(r)
			frame(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 3, "\x82")(r)
		}, want: "GOAWAY PROTOCOL_ERROR"},
		{name: "PUSH_PROMISE", say: frame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, "\x00\x00\x00\x02\x82"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "settings of a stream", say: frame(http2.FrameSettings, 0, 1, ""), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "settings of an odd length", say: frame(http2.FrameSettings, 0, 0, "12345"), want: "GOAWAY FRAME_SIZE_ERROR"},
		{name: "settings in their own acknowledgement", say: frame(http2.FrameSettings, http2.FlagSettingsAck, 0, "123456"), want: "GOAWAY FRAME_SIZE_ERROR"},
		{name: "a setting of windows too large", say: frame(http2.FrameSettings, 0, 0, "\x00\x04\x80\x00\x00\x00"), want: "GOAWAY FLOW_CONTROL_ERROR"},
		{name: "a setting of pushes that is neither", say: frame(http2.FrameSettings, 0, 0, "\x00\x02\x00\x00\x00\x02"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "a setting of frames too small", say: frame(http2.FrameSettings, 0, 0, "\x00\x05\x00\x00\x00\x01"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "a ping of a stream", say: frame(http2.FramePing, 0, 1, "12345678"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "a ping too short", say: frame(http2.FramePing, 0, 0, "1234567"), want: "GOAWAY FRAME_SIZE_ERROR"},
		{name: "WINDOW_UPDATE of 0", say: frame(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x00"), want: "GOAWAY PROTOCOL_ERROR"},
		{name: "WINDOW_UPDATE too large", say: frame(http2.FrameWindowUpdate, 0, 0, "\x7f\xff\xff\xff"), want: "GOAWAY FLOW_CONTROL_ERROR"},
		{name: "RST_STREAM too short", say: frame(http2.FrameRSTStream, 0, 1, "123"), want: "GOAWAY FRAME_SIZE_ERROR"},
		{name: "a frame too large", say: frame(http2.FrameData, 0, 1, strings.Repeat("x", 16<<10+1)), want: "GOAWAY FRAME_SIZE_ERROR"},
	}
}

// Blocks is for calls that wait until the test lets them go on.
func (s *session) Blocks(p *grpcv2.Payload) bool { return p.Type == blocking }

// blocking is the type of calls that block.
const blocking = "Blocking"

var _ transport.Session = (*session)(nil)
