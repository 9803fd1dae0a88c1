// Package balance chooses one instance out of many: by weighted chance, in turn, by a
// key, or by how busy they are. What it has are the [rollcall.Balancer]s for
// [rollcall.Watch.Picker]:
//
//	pick := watch.Picker(balance.WeightedRandom())
//	in, err := pick.Pick()
//	…
//	pick.Done(in, err)
//
// # Who may be picked
//
// Instances that are enabled, healthy and of a weight above 0. A weight above 10000
// counts as 10000, and NaN as 0. Weight 0 is how an instance drains: it is never
// picked, whatever else is there. When the server says that too few are healthy
// ([rollcall.Snapshot.Protected]), all count as healthy. [AllowUnhealthy] falls back on
// the unhealthy ones when no other is left.
//
// If there is none, the error is [rollcall.ErrNoHealthyInstances] when instances are
// only unhealthy, and else [rollcall.ErrNoInstances].
//
// # What it costs
//
// A picker is built once for each change of the service. A pick then takes no lock and
// allocates nothing, and its time does not depend on how many instances there are.
package balance
