// Package grpcv2 holds the wire types of the gRPC protocol that clients of Nacos
// 2.x and 3.x speak: the protobuf message Payload that both methods carry, and
// the JSON requests, answers and pushes within it.
//
// Everything is laid out by hand, without reflection: a [Payload] and the
// requests decoded from it are parts of the memory that was read, and answers are
// appended to memory of the caller. Decoders are tolerant where clients differ
// (unknown members are ignored, null is as good as absent, scalars are read as
// Jackson reads them) and bounded where a client could do harm. Encoders write
// every member that some client insists on and never a null.
//
// Nothing here knows a rule of the registry. All functions are safe for
// concurrent use.
package grpcv2
