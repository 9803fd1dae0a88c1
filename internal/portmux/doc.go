// Package portmux lets HTTP/1.1 and gRPC share a port: it looks at the first bytes
// of each connection and hands it to the one or the other, with the bytes that it
// has read. A client of HTTP/2 begins with a fixed preface, so the first byte that
// differs from it decides; neither protocol waits for more than it sends anyway.
//
// With TLS the client's offer of protocols decides first, and the same look after
// the handshake tells those apart who made none. A PROXY header from a trusted
// proxy comes before everything else.
package portmux
