// Package auth gives requests what proves who sends them: a token, for which it
// logs in with a name and a password, or a signature. Both protocols of a client
// share one [Provider], which is safe for concurrent use and starts no goroutine.
package auth

import "context"

// Credentials are who the client is. At most one of the three ways is set.
type Credentials struct {
	Username, Password   string
	AccessKey, SecretKey string
	// Token is sent as it is.
	Token string
}

// Source returns the credentials as they are now; it is asked before each login
// and when a server refused them. It may block until ctx ends.
type Source func(ctx context.Context) (Credentials, error)

// Field is one parameter of an HTTP request or one header of a gRPC payload; the
// names are the same: accessToken, or ak, data and signature.
type Field struct{ Name, Value string }
