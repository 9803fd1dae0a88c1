package arch

import (
	"slices"
	"testing"
)

// light are the packages of the SDK that cost a program no more modules than gRPC does.
var light = []string{
	"client", "client/balance", "client/clienttest", "client/lifecycle", "client/rollcallgrpc", "client/rollcallhttp",
}

// affordable are the modules that gRPC needs.
var affordable = []string{
	"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
	"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
}

// TestSDKIsLight keeps what a program gets with the SDK to the standard library, gRPC
// and protobuf.
func TestSDKIsLight(t *testing.T) {
	packages := list(t)
	for _, name := range light {
		p := packages[module+"/"+name]
		if p == nil {
			t.Errorf("there is no package %s", name)
			continue
		}
		for path := range reach(packages, p) {
			if library(path) && !slices.ContainsFunc(affordable, func(tree string) bool { return inTree(path, tree) }) {
				t.Errorf("%s needs %s", name, path)
			}
		}
	}
}
