package portmux

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// refusal is what a client reads that speaks clear text where it must not.
	refusal = "this port speaks TLS only: use https"
	// lingerTime and lingerBytes are how long such a client has to read it, and how
	// much of what it still sends is read: closing with something unread would lose
	// the refusal on its way.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
	// unavailable is the status of gRPC that sends SDKs to another server.
	unavailable = 14
)

var errClearText = errors.New("clear text on a port that speaks TLS only")

// refuse tells a client that it must speak TLS, in its own protocol.
func refuse(nc net.Conn, protocol string, prefix []byte) {
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	say := refuseHTTP1
	if protocol == protocolHTTP2 {
		say = refuseHTTP2
	}
	if say(nc, prefix) != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
}

func refuseHTTP1(nc net.Conn, _ []byte) error {
	_, err := fmt.Fprintf(nc, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n", len(refusal)+1, refusal)
	return err
}

// refuseHTTP2 ends the client's first request with a status of gRPC, since clients
// show that as the request's error; the text of GOAWAY alone is lost in some.
func refuseHTTP2(nc net.Conn, prefix []byte) error {
	in := io.MultiReader(bytes.NewReader(prefix), nc)
	if _, err := io.CopyN(io.Discard, in, int64(len(http2.ClientPreface))); err != nil {
		return err
	}
	fr := http2.NewFramer(nc, in)
	fr.SetMaxReadFrameSize(16 << 10) // what the settings allow that are not sent
	if err := fr.WriteSettings(); err != nil {
		return err
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		if _, request := f.(*http2.HeadersFrame); !request {
			continue
		}
		err = fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: f.Header().StreamID, BlockFragment: refusalHeaders(), EndHeaders: true, EndStream: true,
		})
		if err != nil {
			return err
		}
		return fr.WriteGoAway(f.Header().StreamID, http2.ErrCodeInadequateSecurity, []byte(refusal))
	}
}

func refusalHeaders() []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{
		{Name: ":status", Value: "200"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "grpc-status", Value: strconv.Itoa(unavailable)},
		{Name: "grpc-message", Value: refusal},
	} {
		_ = enc.WriteField(f) // into memory, which does not fail
	}
	return b.Bytes()
}
