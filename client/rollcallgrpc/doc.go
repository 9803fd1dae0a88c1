// Package rollcallgrpc lets gRPC find its servers by package rollcall, and choose among
// them.
//
//	conn, err := grpc.NewClient("rollcall://public/DEFAULT_GROUP/orders",
//		grpc.WithResolvers(rollcallgrpc.NewResolver(client)),
//		grpc.WithTransportCredentials(insecure.NewCredentials()))
//
// # Targets
//
// A target is rollcall://namespace/group/service. An empty namespace stands for the
// default of the client, and the group may be left out: rollcall:///orders. What has
// slashes in it is escaped as in a URL, which [Target] does. The parameter cluster
// chooses clusters of instances: rollcall:///orders?cluster=a,b.
//
// # Choosing a server
//
// Which server gets a call is up to a policy of gRPC. The resolver asks for the policy
// [Policy], and if there is none of that name, for round_robin, which knows no weights.
// gRPC finds policies in a register that is global to the process and must be filled
// before any connection is made; so this is left to the program:
//
//	balancer.Register(rollcallgrpc.NewPolicy(rollcallgrpc.Policy, balance.WeightedRandom()))
//
// The policy connects to all instances that may be picked and picks among those that are
// connected. An instance of weight 0, a disabled and an unhealthy one gets no new calls,
// while its old ones go on.
//
// # Serving
//
// [NewServer] prepares a grpc.Server for package lifecycle, which registers it while it
// serves.
package rollcallgrpc
