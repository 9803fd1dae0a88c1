package grpcmode

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// codec moves Payloads that are encoded already: []byte out, *[]byte in.
type codec struct{}

// Name is what servers know the encoding by.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("encode a %T: no message", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal copies the message, which the receiver then owns. One that is too large is
// nil, so that the stream outlives it.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("decode a %T: no message", v)
	}
	if data.Len() > maxMessage {
		*b = nil
		return nil
	}
	*b = data.Materialize()
	return nil
}
