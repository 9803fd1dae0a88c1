package registry

import (
	"slices"
	"strings"
	"sync"
)

// directory lists the services of each namespace in the order of their grouped
// names, so that lists and pages are stable and cost no sorting. Its lock is
// taken with a shard's lock held.
type directory struct {
	mu     sync.RWMutex
	spaces map[string]*nameList
}

func (d *directory) add(key ServiceKey, grouped string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spaces == nil {
		d.spaces = map[string]*nameList{}
	}
	list := d.spaces[key.Namespace]
	if list == nil {
		list = &nameList{}
		d.spaces[key.Namespace] = list
	}
	list.add(name{grouped: grouped, key: key})
}

func (d *directory) remove(key ServiceKey, grouped string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.spaces[key.Namespace]
	list.remove(name{grouped: grouped, key: key})
	if list.size == 0 {
		delete(d.spaces, key.Namespace)
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

// nameChunk bounds how many names one insertion moves.
const nameChunk = 512

type name struct {
	grouped string
	key     ServiceKey
}

// compare orders by grouped name. Keys that differ and yet have one grouped name
// (a@@b, c and a, b@@c) are told apart by their group.
func (n name) compare(o name) int {
	if c := strings.Compare(n.grouped, o.grouped); c != 0 {
		return c
	}
	return strings.Compare(n.key.Group, o.key.Group)
}

// nameList is a sorted list in chunks of at most nameChunk names.
type nameList struct {
	chunks [][]name
	size   int
}

// find returns the chunk and the place in it where n is or belongs.
func (l *nameList) find(n name) (chunk, at int, found bool) {
	chunk, _ = slices.BinarySearchFunc(l.chunks, n, func(c []name, n name) int {
		return c[len(c)-1].compare(n)
	})
	if chunk == len(l.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(l.chunks[chunk], n, name.compare)
	return chunk, at, found
}

func (l *nameList) add(n name) {
	c, at, found := l.find(n)
	if found {
		return
	}
	l.size++
	if c == len(l.chunks) {
		if c == 0 {
			l.chunks = [][]name{{n}}
			return
		}
		c--
		at = len(l.chunks[c])
	}
	chunk := slices.Insert(l.chunks[c], at, n)
	l.chunks[c] = chunk
	if len(chunk) > nameChunk {
		half := len(chunk) / 2
		l.chunks[c] = slices.Clone(chunk[:half])
		l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(chunk[half:]))
	}
}

func (l *nameList) remove(n name) {
	c, at, found := l.find(n)
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
func (l *nameList) rank(grouped string) int {
	c, at, _ := l.find(name{grouped: grouped})
	for _, chunk := range l.chunks[:c] {
		at += len(chunk)
	}
	return at
}

// slice returns the keys of the names from rank from to before rank to.
func (l *nameList) slice(from, to int) []ServiceKey {
	keys := make([]ServiceKey, 0, max(to-from, 0))
	for _, chunk := range l.chunks {
		if from < len(chunk) && to > 0 {
			for _, n := range chunk[max(from, 0):min(to, len(chunk))] {
				keys = append(keys, n.key)
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
