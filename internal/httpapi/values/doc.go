// Package values reads and shows what the calls of every generation of the API
// carry as text or JSON within one parameter: the body of a beat, lists of
// instances, selectors, probes, expressions to search names by, levels of the log;
// and the answer to a login while authentication is off.
//
// What it returns may be memory of its argument. Its functions are safe for
// concurrent use; a [Search] belongs to one goroutine.
package values
