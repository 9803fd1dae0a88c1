// Package grpcgo is the transport over grpc-go. It implements the seam of package
// transport and knows nothing of what messages mean. The server uses package h2; this
// one is what that is compared with, and the way back.
//
// What is set differently from grpc-go's defaults is set for thousands of
// connections that are idle nearly always: small read buffers, write buffers that
// are shared, flow-control windows that do not grow. Messages are encoded and
// decoded by package grpcv2 without copies; memory of sent messages is used
// again.
package grpcgo
