package registry

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Namespace is a named space of services. The namespace "public" is always
// there. Naming calls may use any ID, whether or not it is in the list.
type Namespace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Description is nil when none was given, which 1.x tells from an empty one.
	Description *string `json:"description,omitempty"`
}

type namespaces struct {
	mu   sync.RWMutex
	byID map[string]Namespace
}

// set adds or replaces a namespace.
func (ns *namespaces) set(n Namespace) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.byID == nil {
		ns.byID = map[string]Namespace{}
	}
	ns.byID[n.ID] = n
}

// Namespaces returns the namespaces that were created, without "public", sorted
// by ID.
func (s *Store) Namespaces() []Namespace {
	s.namespaces.mu.RLock()
	list := slices.Collect(maps.Values(s.namespaces.byID))
	s.namespaces.mu.RUnlock()
	slices.SortFunc(list, func(a, b Namespace) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// NamespaceByID returns a created namespace.
func (s *Store) NamespaceByID(id string) (Namespace, bool) {
	s.namespaces.mu.RLock()
	defer s.namespaces.mu.RUnlock()
	n, ok := s.namespaces.byID[id]
	return n, ok
}

// CreateNamespace is a durable command; it refuses an ID that exists.
type CreateNamespace struct {
	Meta
	Namespace Namespace `json:"namespace"`
}

func (c *CreateNamespace) apply(s *Store) (Result, error) {
	s.namespaces.mu.Lock()
	defer s.namespaces.mu.Unlock()
	if _, ok := s.namespaces.byID[c.Namespace.ID]; ok || c.Namespace.ID == DefaultNamespace {
		return Result{}, Refuse(NamespaceExists, "namespaceId", c.Namespace.ID, "namespace %s exists", c.Namespace.ID)
	}
	if s.namespaces.byID == nil {
		s.namespaces.byID = map[string]Namespace{}
	}
	s.namespaces.byID[c.Namespace.ID] = c.Namespace
	s.sink.Emit(&Event{Kind: NamespaceCreated, At: c.At, Cause: c.Cause, Detail: c.Namespace.ID})
	return Result{}, nil
}

// UpdateNamespace is a durable command; it refuses an ID that does not exist.
type UpdateNamespace struct {
	Meta
	Namespace Namespace `json:"namespace"`
}

func (c *UpdateNamespace) apply(s *Store) (Result, error) {
	s.namespaces.mu.Lock()
	defer s.namespaces.mu.Unlock()
	if _, ok := s.namespaces.byID[c.Namespace.ID]; !ok {
		return Result{}, namespaceNotFound(c.Namespace.ID)
	}
	s.namespaces.byID[c.Namespace.ID] = c.Namespace
	s.sink.Emit(&Event{Kind: NamespaceUpdated, At: c.At, Cause: c.Cause, Detail: c.Namespace.ID})
	return Result{}, nil
}

// DeleteNamespace is a durable command. The services in it are untouched.
type DeleteNamespace struct {
	Meta
	ID string `json:"id"`
}

func (c *DeleteNamespace) apply(s *Store) (Result, error) {
	s.namespaces.mu.Lock()
	defer s.namespaces.mu.Unlock()
	if _, ok := s.namespaces.byID[c.ID]; !ok {
		return Result{}, namespaceNotFound(c.ID)
	}
	delete(s.namespaces.byID, c.ID)
	s.sink.Emit(&Event{Kind: NamespaceRemoved, At: c.At, Cause: c.Cause, Detail: c.ID})
	return Result{}, nil
}

func namespaceNotFound(id string) *Error {
	return Refuse(NamespaceNotFound, "namespaceId", id, "namespace %s does not exist", id)
}
