// Package portmux lets HTTP/1.1 and gRPC share a port, in clear text and over TLS:
// it looks at the first bytes of each connection and hands it to the one or the
// other, with the bytes that it has read. A client of HTTP/2 begins with a fixed
// preface, so the first byte that differs from it decides; a handshake of TLS
// begins with a byte that neither protocol begins with. Nobody waits for more than
// the client sends anyway.
//
// TLS ends here: what the backends get is a connection in clear text. The protocol
// that client and server agreed on in the handshake decides, and for clients that
// offered none the same look at the first bytes. A PROXY header from a trusted
// proxy comes before everything else, also before a handshake.
package portmux
