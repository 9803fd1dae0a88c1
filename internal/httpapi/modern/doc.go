// Package modern serves the calls that the APIs of 2.x and 3.x have in common, and
// holds the parts and the JSON that both need. Packages v2 and v3 route to it, and
// add the calls and the forms of answers that only one of them has.
//
// A call decodes, calls naming and encodes; what a generation says in its own words
// is in its [result.Dialect]. An [API] is safe for concurrent use and starts no
// goroutine.
package modern
