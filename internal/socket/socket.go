// Package socket reads and writes the socket of a connection without waiting, so that
// a front-end can hold thousands of idle connections without a buffer for each: it
// waits until the socket is readable, and takes a buffer then.
package socket

import "errors"

// ErrWouldBlock says that a socket has nothing to read now.
var ErrWouldBlock = errors.New("socket: nothing to read")
