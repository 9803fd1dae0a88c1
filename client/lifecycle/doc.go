// Package lifecycle keeps a server registered exactly as long as it serves. [Run] listens
// to a context, as a program that ends with a signal has it:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	l, err := net.Listen("tcp", ":8080")
//	…
//	err = lifecycle.Run(ctx, client, rollcall.Service{Name: "orders"}, l, &http.Server{Handler: h})
//
// # What happens when
//
//  1. The server accepts connections, and is ready; see [WithReady].
//  2. The instance is registered, and stays so whatever happens to the registry. Run does
//     not wait for it: a service can serve those who know it while the registry is away.
//  3. When ctx ends, the weight of the instance becomes 0, and for some time the server
//     goes on serving those who have not heard of it; see [WithDrain].
//  4. The instance is deregistered.
//  5. The server takes no more requests and ends when those that run have ended; see
//     [WithGrace].
//
// When the server ends on its own, the instance is deregistered at once.
//
// An [http.Server] can be run as it is, a grpc.Server by way of rollcallgrpc.NewServer.
package lifecycle
