// Package upgrade opens data directories of every format that a version of
// Rollcall has written. testdata/format-N is one of format N, and
// testdata/format-N.ndjson the durable state it must give, as an export.
//
// The directories are never edited. A change that can no longer read one needs
// a new format with a migration, and a new directory:
//
//	go test ./test/upgrade -update
//
// writes that of the current format.
package upgrade
