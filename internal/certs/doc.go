// Package certs keeps a server's certificate: it reads the files, hands out the
// settings of TLS, and reads the files again when they change. What is wrong with
// new files never takes the old certificate away. It knows no listener and no
// protocol above TLS. A [Files] is safe for concurrent use.
package certs
