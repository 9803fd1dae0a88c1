// Package store owns the data directory: its lock, its format version and
// migrations, and the small file primitives that the durable parts share
// (atomic replacement, checksummed streams, free space, errors that tell an
// operator what to do).
//
// It knows nothing about what the files mean. Package consensus keeps the
// replicated log below [Dir.Path]; other parts keep theirs
// beside it.
//
// The layout of format 1:
//
//	format.json       the format number and the identity of this directory
//	lock              held exclusively while a server uses the directory
//	before-format-N/  the untouched copy made before a migration to format N
//	…                 everything else belongs to the part that made it
//
// [Dir] is safe for concurrent use.
package store
