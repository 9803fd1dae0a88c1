// Package httpmode speaks HTTP to servers of 0.9 and 1.x, and to later ones where
// their gRPC port cannot be reached. It implements [wire.Transport].
//
// HTTP has no connection to stand for a client, so two loops do: each published
// instance is kept alive by beats, at the interval that the server tells, and each
// subscribed service is asked for again, as often as the server tells, which also
// renews the subscription to pushes over UDP. Servers forget: a beat that is
// answered "unknown" registers anew at once.
//
// The paths and forms of the generations are in dialect.go and its kin. The one to
// use is found out when a session begins and when a server no longer knows a path.
//
// A [Transport] starts no goroutine outside Run. Its operations that need no beats
// and polls (queries, persistent instances, lists of names) work without Run too.
package httpmode
