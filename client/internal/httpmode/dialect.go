package httpmode

import "github.com/rollcall-registry/rollcall/client/internal/wire"

// dialect is the paths and forms of one generation of servers.
type dialect interface {
	// name is what lists and packets call a service.
	name(s wire.Service) string
	register(s wire.Service, i *wire.Instance) *request
	deregister(s wire.Service, i *wire.Instance) *request
	// beat makes a beat; a light one names the instance only.
	beat(s wire.Service, i *wire.Instance, light bool) *request
	readBeat(body []byte) (beatAnswer, error)
	// list asks for a service; with a port it subscribes to pushes too.
	list(s wire.Service, to udpTarget) *request
	// readList returns the ServiceInfo of an answer.
	readList(body []byte) ([]byte, error)
	services(namespace, group string, page, size int) *request
	// readServices returns names, without the group, and how many there are in all.
	readServices(body []byte, namespace, group string, page, size int) ([]string, int, error)
	// pushes reports whether such servers push over UDP.
	pushes() bool
}

// udpTarget is where pushes are to be sent; port 0 for nowhere.
type udpTarget struct {
	ip   string
	port int
}

// beatAnswer is what a server says to a beat.
type beatAnswer struct {
	// millis is when the next beat is wanted; 0 if it does not say.
	millis  int64
	unknown bool // the instance is to be registered again
	light   bool // light beats will do
}

// ungrouped is the group of services in dialects without groups.
const ungrouped = "DEFAULT_GROUP"
