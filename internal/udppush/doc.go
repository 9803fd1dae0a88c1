// Package udppush tells clients of Nacos 0.9 and 1.x of changes: one UDP socket
// that sends packets and hears their acknowledgements.
//
// A [Sender] is the push.Sender of UDP subscribers. What it is given goes into an
// outbox with at most one packet per subscriber: a newer one replaces what was
// not sent yet. The outbox is emptied in turn, service by service, and no faster
// than a receiver's socket and our own can take it. A packet that is not
// acknowledged is sent once more after ten seconds, the same bytes from the same
// port, and given up ten seconds later; a newer packet to the same subscriber
// takes its place.
//
// [Admission] is the one rule of who may be pushed to, and where: a packet goes
// to the address that asked, or to a range that the operator allows, so that
// nobody can have traffic sent to somebody else.
//
// What a payload looks like is the business of the v1 API, when to push that of
// package push.
package udppush
