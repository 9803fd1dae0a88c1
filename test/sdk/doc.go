// Package sdk tries the Go SDK on real servers in the process: over each protocol, and
// through what servers and networks do to clients. It holds tests only.
package sdk
