// Package rollcallhttp sends HTTP requests to services by name. What it has is an
// [http.RoundTripper]:
//
//	transport := rollcallhttp.NewTransport(client)
//	defer transport.Close()
//	h := &http.Client{Transport: transport}
//	resp, err := h.Get("http://orders.rollcall/v1/orders/7")
//
// The host of a URL names a service if it ends in .rollcall, or if the scheme is
// rollcall; [WithNames] changes that. Other requests pass through.
//
// Each service is watched from its first request on, which waits until the service is
// known, as long as its context lets it: while the registry is away at the start of a
// program, that can be long. A request is sent to the instance
// that the balancer picks, over https if the instance's metadata says secure=true. If no
// connection to it can be had, and nothing of the request was sent for that reason,
// another instance is tried, as long as the balancer has one that was not, up to three in
// all; what was sent is never sent again. The Host header stays as it is.
//
// Package lifecycle registers an [http.Server] while it serves.
package rollcallhttp
