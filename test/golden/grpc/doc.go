// Package grpc replays recordings of real Nacos servers over gRPC and tells how the
// answers differ. It knows nothing of the server but its address.
//
// A recording is a transcript: steps of the client, with the time at which they
// were made, and what the server was seen to do. Values, keys and codes must be as
// recorded; times need not be, so that a server may push sooner, merge more or
// less, and leave out pushes that say nothing new:
//
//   - A step of the client is made no earlier than recorded. When the server was
//     late, all later steps move. An acknowledgement follows its frame after the
//     recorded delay.
//   - A frame may come until three seconds after its time. Pushes of other states of
//     the service may come before it. A push may be missing when the last one showed
//     that state already, or when a later state came instead.
//   - What was not acknowledged must come again once within ten seconds.
//   - A probe of a silent client may come 15 to 30 s after its last sign of life.
//   - Where nothing came, only a repeat of the last push may come.
package grpc
