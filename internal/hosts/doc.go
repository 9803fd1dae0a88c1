// Package hosts shows the instances of a service as clients of 2.x and later read
// them, over HTTP and gRPC alike: which of them a look-up selects, and their JSON,
// which is encoded once for all who ask the same of one view.
//
// It leaves names, echoes and envelopes to the front-ends. All of it is safe for
// concurrent use.
package hosts
