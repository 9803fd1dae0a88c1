package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

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

// client is one connection.
type client struct {
	t    *target
	conn *grpc.ClientConn
	// Its stream, once it is open.
	stream grpc.ClientStream
}

func dial(t *target) (*client, error) {
	conn, err := grpc.NewClient("passthrough:///"+t.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})), grpc.WithDisableServiceConfig(),
		grpc.WithReadBufferSize(4<<10))
	if err != nil {
		return nil, err
	}
	return &client{t: t, conn: conn}, nil
}

// payload encodes a message as the target reads it: a Payload, or as many bytes
// with the size of the answer in front.
func (t *target) payload(kind, body string, answer int) []byte {
	p := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: kind, ClientIP: "127.0.0.1"}, []byte(body))
	if t.kind == rollcallServer {
		return p
	}
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(p)))
	b = binary.BigEndian.AppendUint32(b, uint32(answer))
	return append(b, p[4:]...)
}

func (c *client) call(ctx context.Context, method string, m []byte) ([]byte, error) {
	var answer []byte
	err := c.conn.Invoke(ctx, "/"+grpcv2.UnaryService+"/"+method, m, &answer)
	return answer, err
}

// do makes a unary call that must succeed.
func (c *client) do(ctx context.Context, m []byte) error {
	answer, err := c.call(ctx, grpcv2.UnaryMethod, m)
	if err != nil || c.t.kind != rollcallServer {
		return err
	}
	if !strings.Contains(string(answer), `"success":true`) {
		return fmt.Errorf("the answer is %q", answer)
	}
	return nil
}

// join opens the stream and, at Rollcall, registers the client and waits until
// that is done.
func (c *client) join(ctx context.Context) (err error) {
	c.stream, err = c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/"+grpcv2.StreamService+"/"+grpcv2.StreamMethod)
	if err != nil {
		return err
	}
	setup := `{"clientVersion":"Nacos-Java-Client:v2.5.1","tenant":"","labels":{"source":"sdk","module":"naming","AppName":"unknown"},"abilityTable":{}}`
	if err := c.stream.SendMsg(c.t.payload(grpcv2.ConnectionSetup, setup, 0)); err != nil {
		return err
	}
	if c.t.kind == rollcallServer {
		var ack []byte
		return c.stream.RecvMsg(&ack)
	}
	return nil
}

// dialAll connects and joins n clients.
func dialAll(ctx context.Context, t *target, n int) ([]*client, error) {
	list := make([]*client, n)
	for i := range list {
		c, err := dial(t)
		if err != nil {
			return nil, err
		}
		if err := c.join(ctx); err != nil {
			return nil, err
		}
		list[i] = c
	}
	return list, nil
}

func closeAll(list []*client) {
	for _, c := range list {
		_ = c.conn.Close()
	}
}
