package transporttest

import (
	"bytes"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// silentClient opens a stream and then reads nothing at all.
type silentClient struct{ nc net.Conn }

func newSilentClient(t *testing.T, address string) *silentClient {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c := &silentClient{nc}
	t.Cleanup(c.close)
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr := http2.NewFramer(&out, nil)
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: address},
		{Name: ":path", Value: "/" + grpcv2.StreamService + "/" + grpcv2.StreamMethod},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		if err := enc.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		// A large window, so that it is TCP that is full in the end.
		fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}),
		fr.WriteWindowUpdate(0, 1<<30),
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *silentClient) close() { _ = c.nc.Close() }
