// Package lookup reads a look-up as clients make it over HTTP, and makes those who
// want UDP packets subscribers: the one rule of every generation of the API.
// Whether packets may go where they are wanted is for package udppush to judge,
// what is answered for the API that was called. It is safe for concurrent use.
package lookup

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Query is a decoded look-up. Its texts are memory of the request.
type Query struct {
	Key         registry.ServiceKey
	Clusters    string // as asked for: clients key their cache by it
	HealthyOnly bool
	IsCheck     bool
	Env, App    string
	UDPPort     int    // 0: polls only
	ClientIP    string // where packets are wanted; "" for where the call comes from
}

// Parse reads all but the name of the service, which the generations spell
// differently. 0.9 and 1.x agree on the rest.
func Parse(p *httpapi.Params, key registry.ServiceKey) (Query, error) {
	udpPort, err := p.Int("udpPort", 0)
	if err != nil {
		return Query{}, err
	}
	return Query{
		Key:         key,
		Clusters:    p.Optional("clusters", ""),
		HealthyOnly: p.BoolStrict("healthyOnly", false),
		IsCheck:     p.BoolStrict("isCheck", false),
		Env:         p.Optional("env", ""),
		App:         p.Optional("app", ""),
		UDPPort:     udpPort,
		ClientIP:    p.Optional("clientIP", ""),
	}, nil
}
