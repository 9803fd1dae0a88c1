package registry

import (
	"slices"
	"strings"
	"sync"
)

// directory lists the services of each namespace in the order of their grouped
// names, so that lists and pages are stable and cost no sorting. Of a service it
// looks at the key and the grouped name alone, which never change. Its lock is
// taken with a shard's lock held.
type directory struct {
	mu     sync.RWMutex
	spaces map[string]*serviceList
}

func (d *directory) add(svc *service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spaces == nil {
		d.spaces = map[string]*serviceList{}
	}
	list := d.spaces[svc.key.Namespace]
	if list == nil {
		list = &serviceList{}
		d.spaces[svc.key.Namespace] = list
	}
	list.add(svc)
}

func (d *directory) remove(svc *service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.spaces[svc.key.Namespace]
	list.remove(svc)
	if list.size == 0 {
		delete(d.spaces, svc.key.Namespace)
	}
}

// Services returns the services of a namespace in the order of their grouped
// names, from offset on, at most limit; a negative limit means all. group ""
// means all groups. total counts the matching services whatever the page.
func (s *Store) Services(namespace, group string, offset, limit int) (page []ServiceKey, total int) {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	list := s.names.spaces[namespace]
	if list == nil {
		return nil, 0
	}
	from, to := 0, list.size
	if group != "" {
		// All that begins with group@@ sorts before group@A, as A follows @.
		from, to = list.rank(group+"@@"), list.rank(group+"@A")
	}
	total = to - from
	from = min(from+max(offset, 0), to)
	if limit >= 0 && limit < to-from {
		to = from + limit
	}
	return list.slice(from, to), total
}

// ServiceNamespaces returns the IDs of the namespaces that have services, sorted.
func (s *Store) ServiceNamespaces() []string {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	ids := make([]string, 0, len(s.names.spaces))
	for id := range s.names.spaces {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// listChunk bounds how many places one insertion moves.
const listChunk = 512

// serviceList is a sorted list in chunks of at most listChunk services.
type serviceList struct {
	chunks [][]*service
	size   int
}

// compareName orders by grouped name. Services whose keys differ and that yet
// have one grouped name (a@@b, c and a, b@@c) are told apart by their group.
func (svc *service) compareName(grouped, group string) int {
	if c := strings.Compare(svc.grouped, grouped); c != 0 {
		return c
	}
	return strings.Compare(svc.key.Group, group)
}

// find returns the chunk and the place in it where a name is or belongs.
func (l *serviceList) find(grouped, group string) (chunk, at int, found bool) {
	compare := func(svc *service, grouped string) int { return svc.compareName(grouped, group) }
	chunk, _ = slices.BinarySearchFunc(l.chunks, grouped, func(c []*service, grouped string) int {
		return compare(c[len(c)-1], grouped)
	})
	if chunk == len(l.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(l.chunks[chunk], grouped, compare)
	return chunk, at, found
}

func (l *serviceList) add(svc *service) {
	c, at, found := l.find(svc.grouped, svc.key.Group)
	if found {
		return
	}
	l.size++
	if c == len(l.chunks) {
		if c == 0 {
			l.chunks = [][]*service{{svc}}
			return
		}
		c--
		at = len(l.chunks[c])
	}
	chunk := slices.Insert(l.chunks[c], at, svc)
	l.chunks[c] = chunk
	if len(chunk) > listChunk {
		half := len(chunk) / 2
		l.chunks[c] = slices.Clone(chunk[:half])
		l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(chunk[half:]))
	}
}

func (l *serviceList) remove(svc *service) {
	c, at, found := l.find(svc.grouped, svc.key.Group)
	if !found {
		return
	}
	l.size--
	l.chunks[c] = slices.Delete(l.chunks[c], at, at+1)
	if len(l.chunks[c]) == 0 {
		l.chunks = slices.Delete(l.chunks, c, c+1)
	}
}

// rank returns how many names sort before a grouped name.
func (l *serviceList) rank(grouped string) int {
	c, at, _ := l.find(grouped, "")
	for _, chunk := range l.chunks[:c] {
		at += len(chunk)
	}
	return at
}

// slice returns the keys of the services from rank from to before rank to.
func (l *serviceList) slice(from, to int) []ServiceKey {
	keys := make([]ServiceKey, 0, max(to-from, 0))
	for _, chunk := range l.chunks {
		if from < len(chunk) && to > 0 {
			for _, svc := range chunk[max(from, 0):min(to, len(chunk))] {
				keys = append(keys, svc.key)
			}
		}
		from -= len(chunk)
		to -= len(chunk)
		if to <= 0 {
			break
		}
	}
	return keys
}
