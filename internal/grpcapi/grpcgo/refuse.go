package grpcgo

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// refuse tells a client why it is not served, and closes its connection.
func (s *Server) refuse(nc net.Conn, prefix []byte, reason error) {
	defer func() { _ = nc.Close() }()
	if !s.admission.StartRefusing() {
		return
	}
	defer s.admission.StopRefusing()
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil || answerOnce(nc, prefix, reason.Error()) != nil {
		return
	}
	// Closing at once would reset the connection and lose the answer on its way.
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, maxHeaders)
	}
}

// answerOnce speaks just enough HTTP/2 to end the client's first call or stream
// with UNAVAILABLE, which every gRPC library shows as that call's error. GOAWAY
// alone has its text lost in some of them.
func answerOnce(nc net.Conn, prefix []byte, text string) error {
	in := io.MultiReader(bytes.NewReader(prefix), nc)
	if _, err := io.CopyN(io.Discard, in, int64(len(http2.ClientPreface))); err != nil {
		return err
	}
	fr := http2.NewFramer(nc, in)
	if err := fr.WriteSettings(); err != nil {
		return err
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		if _, called := f.(*http2.HeadersFrame); !called {
			continue
		}
		err = fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: f.Header().StreamID, BlockFragment: refusalHeaders(text), EndHeaders: true, EndStream: true,
		})
		if err != nil {
			return err
		}
		return fr.WriteGoAway(f.Header().StreamID, http2.ErrCodeEnhanceYourCalm, []byte(text))
	}
}

// refusalHeaders returns the headers of an answer that is nothing but a status.
func refusalHeaders(text string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{
		{Name: ":status", Value: "200"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "grpc-status", Value: strconv.Itoa(int(transport.Unavailable))},
		{Name: "grpc-message", Value: text},
	} {
		_ = enc.WriteField(f) // into memory, which does not fail
	}
	return b.Bytes()
}
