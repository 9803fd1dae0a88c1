// Package compat drives the built binary with the official client SDKs, as their
// own package clients fetch them:
//
//	go test -v -timeout 60m ./test/compat -sdk all
//
// Each SDK has a driver: a small program in the SDK's language that reads orders
// from its standard input and writes what it saw to its standard output, one JSON
// object a line (see protocol_test.go). The scenarios are written once, in Go, and
// run with every driver; what the SDK saw is compared with what the server tells
// of itself in /rollcall/v1/explain and /rollcall/v1/history.
//
// A new SDK is a driver program and a row of drivers(). A new scenario is a
// function and a row of scenarios(). An SDK whose toolchain is missing is skipped
// by name. Without -sdk nothing runs, so that `go test ./...` stays offline and
// quick.
package compat
