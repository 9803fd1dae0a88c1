package httpapi

import (
	"slices"
	"sync"
	"unsafe"
)

// answerMemory counts the memory of large answers that are being written. What
// several of them share counts once.
type answerMemory struct {
	max int64 // bytes

	mu    sync.Mutex
	used  int64
	parts map[*byte]heldPart // by their first byte; those over keepBytes alone
}

// heldPart is a part of answers.
type heldPart struct {
	size    int64
	answers int // that have it
}

func (m *answerMemory) init(most int64) {
	m.max, m.parts = most, map[*byte]heldPart{}
}

// hold counts parts, unless that passes the limit.
func (m *answerMemory) hold(parts ...[]byte) bool {
	if !anyLarge(parts) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(parts)
	if m.used > m.max {
		m.remove(parts)
		return false
	}
	return true
}

// release takes parts off the count.
func (m *answerMemory) release(parts ...[]byte) {
	if anyLarge(parts) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.remove(parts)
	}
}

// replace counts now instead of before, whatever the limit.
func (m *answerMemory) replace(before [3][]byte, now []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add([][]byte{now})
	m.remove(before[:])
}

// reserve counts size bytes of work on an answer, unless that passes the limit;
// free takes them off again.
func (m *answerMemory) reserve(size int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+size > m.max {
		return false
	}
	m.used += size
	return true
}

func (m *answerMemory) free(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= size
}

// add is called with m.mu held, as is remove.
func (m *answerMemory) add(parts [][]byte) {
	for _, p := range parts {
		if !largePart(p) {
			continue
		}
		first := unsafe.SliceData(p)
		h, held := m.parts[first]
		if !held {
			h.size = int64(cap(p))
			m.used += h.size
		}
		h.answers++
		m.parts[first] = h
	}
}

func (m *answerMemory) remove(parts [][]byte) {
	for _, p := range parts {
		if !largePart(p) {
			continue
		}
		first := unsafe.SliceData(p)
		h := m.parts[first]
		if h.answers--; h.answers > 0 {
			m.parts[first] = h
			continue
		}
		delete(m.parts, first)
		m.used -= h.size
	}
}

func largePart(p []byte) bool { return cap(p) > keepBytes }

func anyLarge(parts [][]byte) bool { return slices.ContainsFunc(parts, largePart) }

// holdAnswer counts the memory of the answer until releaseAnswer, and compresses
// it. An answer for which there is no memory becomes a refusal.
func (c *conn) holdAnswer() {
	a := &c.x.answer
	parts := a.parts()
	if c.server.answers.hold(parts[:]...) {
		c.x.compress()
		return
	}
	a.reset()
	c.x.SetHeader("Retry-After", "1")
	c.x.Text(503, "the server has too many large answers in hand; try again")
}

// releaseAnswer gives up the body of the answer, which is written.
func (c *conn) releaseAnswer() {
	a := &c.x.answer
	parts := a.parts()
	c.server.answers.release(parts[:]...)
	a.body, a.more = nil, [2][]byte{}
}
