// Package push tells subscribers of changes, whatever the protocol: it gathers
// the changes of each service, decides when to push, reads the state once, and
// hands it to the [Sender] of each protocol.
//
// The first change of a quiet service leaves at once. After a push the service
// has a merge window: changes in it are gathered and leave when it ends. The
// window is Config.MinWindow at first. It doubles each time that it gathered more
// than one change, and halves when it gathered one: changes that come one after
// the other are no storm. It is never shorter than ten times what the last push
// cost, and never longer than Config.MaxWindow; a window without a change makes
// the service quiet again. So the last state of a service is always pushed, at
// most MaxWindow and one push after its change.
//
// A change is never lost: a service is marked as pushed before its state is
// read, so a change that comes while a push runs marks it again.
//
// The package knows nothing of wires. Acknowledgements, retries and the queue to
// a slow subscriber are the sender's; it may ask for one more push to one
// subscriber with [Pusher.Schedule].
package push
