package compat

import (
	"maps"
	"slices"
	"strconv"
)

// An order is one line to a driver.
type order struct {
	ID int    `json:"id"`
	Op string `json:"op"` // register, deregister, update, batch, lookup, subscribe, status, config
	Instance
	// Batch are the instances of a batch order.
	Batch []Instance `json:"batch,omitempty"`
}

// Instance is an instance as an order names it and as an SDK shows it. Service and
// Group are set in orders only.
type Instance struct {
	Service  string            `json:"service,omitempty"`
	Group    string            `json:"group,omitempty"`
	Cluster  string            `json:"cluster,omitempty"`
	IP       string            `json:"ip,omitempty"`
	Port     int               `json:"port,omitempty"`
	Weight   float64           `json:"weight"`
	Enabled  bool              `json:"enabled"`
	Healthy  bool              `json:"healthy"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Persistent is set in orders only.
	Persistent bool `json:"persistent,omitempty"`
}

// addr returns ip:port.
func (i Instance) addr() string { return i.IP + ":" + strconv.Itoa(i.Port) }

// A line is what a driver writes: first a line with Ready set, then an answer for
// each order, by its ID, and a line with Service set whenever the SDK called a
// listener. What is not JSON is the SDK's own talk.
type line struct {
	Ready string     `json:"ready"` // the SDK's name and version
	ID    int        `json:"id"`
	Error string     `json:"error"`
	Text  string     `json:"text"` // the answer to a status or config order
	Hosts []Instance `json:"hosts"`
	// Service is the service that a listener was told about.
	Service string `json:"service"`
}

// addrs returns the addresses of hosts in order.
func addrs(hosts []Instance) []string {
	set := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		set[h.addr()] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// find returns the host with an address.
func find(hosts []Instance, addr string) (Instance, bool) {
	i := slices.IndexFunc(hosts, func(h Instance) bool { return h.addr() == addr })
	if i < 0 {
		return Instance{}, false
	}
	return hosts[i], true
}
