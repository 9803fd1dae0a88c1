// Package rollcall is the Go client of Rollcall, and of Nacos 1.x to 3.x, for
// service registration, discovery and load balancing. Its import path ends in
// client:
//
//	import rollcall "github.com/rollcall-registry/rollcall/client"
//
// A [Client] is made with [New] and connects in the background. It works with two
// ideas. What the program wants, its registrations and watches, is a desired
// state that the client makes true again after every fault, so that no call is
// the only chance of a registration to exist. And reading is taking a pointer to
// an immutable [Snapshot]: no network, disk, lock or user code is on that way.
//
//	c, err := rollcall.New(rollcall.WithServers("10.0.0.1:8848", "10.0.0.2:8848"))
//	…
//	defer c.Close()
//
//	// be found
//	r, err := c.Register(ctx, rollcall.Service{Name: "orders"}, rollcall.NewInstance("10.0.0.7", 8080))
//
//	// find
//	w, err := c.Watch(ctx, rollcall.Service{Name: "stock"})
//	pick := w.Picker(balance.WeightedRandom())
//	in, err := pick.Pick()
//
// # Words
//
// A service has a name, within a group, within a namespace; that is how all servers of
// this family know it. What offers it are instances, each with an address and a port.
// They are ephemeral, which is to say that they are registered as long as their client
// is there, or persistent, and can be parted in clusters within the service. Clients
// send requests to those that are healthy, enabled and of a weight above 0, in
// proportion to the weight. If fewer of a service are healthy than its protect threshold
// wants, the server shows all as healthy, since the last ones would drown.
//
// # Protocols
//
// By itself the client chooses gRPC, which servers of 2.x, 3.x and Rollcall speak,
// or HTTP, for those of 1.x and before and where the gRPC port cannot be reached. It
// goes on trying gRPC and moves over without a gap. Over HTTP, instances stay registered
// by beats, which the client sends each 5 s or as often as the server says, and changes
// come by polling and, where packets get through, by pushes over UDP.
//
// # Errors
//
// What is wrong with arguments and options is told at once, all of it, and is
// [ErrInvalidArgument]. Other errors of operations are an [*OpError] and tell with
// [errors.Is] what was the matter; one that ended with its context is also what was the
// matter before. A service without instances is an empty snapshot and no error, until
// one is to be picked.
//
// # Concurrency
//
// All types are safe for concurrent use unless they say otherwise. Functions that
// the user passes in run on goroutines of their own or on the caller's, never on
// one that receives; one that panics is logged and counted and harms nothing else.
package rollcall
