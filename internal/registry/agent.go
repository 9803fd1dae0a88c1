package registry

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// agent is the number of what a client calls itself. Fleets are made with few
// libraries, so that an instance knows its client's name by two bytes.
type agent uint16

const (
	noAgent    agent = iota // nobody has said it
	otherAgent              // one that found no room
	firstAgent
)

const (
	// maxAgents bounds the names that are kept: a fleet has dozens of versions at
	// most, but anybody may make names up. Later ones are unknown.
	maxAgents = 1 << 10
	// maxAgentText is how much of a name is kept, in bytes.
	maxAgentText = 128
)

// agents are the names by number. They are only ever added to.
type agents struct {
	known  atomic.Pointer[agentTable]
	adding sync.Mutex // held while a name is added
}

// agentTable is immutable.
type agentTable struct {
	numbers map[string]agent
	texts   []string // by number, without those before firstAgent
}

// number returns the number of a name, which may be memory of a request. A name
// that is known costs a look-up.
func (a *agents) number(text string) agent {
	if len(text) > maxAgentText {
		text = strings.ToValidUTF8(text[:maxAgentText], "")
	}
	if text == "" {
		return noAgent
	}
	if t := a.known.Load(); t != nil {
		if n, ok := t.numbers[text]; ok {
			return n
		}
		if len(t.texts) >= maxAgents {
			return otherAgent
		}
	}
	return a.add(strings.Clone(text))
}

// add numbers a new name. All of them together are copied once each, which
// [maxAgents] bounds.
func (a *agents) add(text string) agent {
	a.adding.Lock()
	defer a.adding.Unlock()
	next := &agentTable{numbers: map[string]agent{}}
	if t := a.known.Load(); t != nil {
		if n, ok := t.numbers[text]; ok {
			return n
		}
		if len(t.texts) >= maxAgents {
			return otherAgent
		}
		next.numbers, next.texts = maps.Clone(t.numbers), t.texts
	}
	n := firstAgent + agent(len(next.texts))
	next.numbers[text] = n
	next.texts = append(next.texts, text) // beyond what readers of the old table see
	a.known.Store(next)
	return n
}

// text returns the name of a number, empty when it is not known.
func (a *agents) text(n agent) string {
	if n < firstAgent {
		return ""
	}
	return a.known.Load().texts[n-firstAgent]
}

// Introduce notes what the HTTP owner of an instance calls itself, if nobody has
// said it since it registered: after a restart, when a client that is remembered
// goes on beating. Like a beat it is no command and no change that anybody is told
// of. name may be memory of a request.
func (s *Store) Introduce(service ServiceKey, instance InstanceKey, name string) {
	n := s.agents.number(name)
	if n == noAgent {
		return
	}
	sh := s.shard(service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.services[service].find(instance.identity()); r != nil {
		if h := r.holdingOf(OwnerHTTP); h != nil && h.agent == noAgent {
			h.agent = n
		}
	}
}
