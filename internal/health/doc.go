// Package health decides who is alive. It has three parts, each of which runs
// on its own:
//
//   - [Clock] is the time of the server. Its lease clock leaves out the spans in
//     which the server itself did not run, so that a pause expires nobody.
//   - [Expirer] lets time pass for the instances that clients keep alive with
//     beats. The rules of expiry are those of package registry.
//   - [Checker] connects to persistent instances as their clusters ask, and
//     reports when their health changes. How one check is done is the work of
//     package probe.
//
// What they find is soft state: nothing of it is written to disk here.
package health
