package naming

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Encoder keeps wire forms of views, so that each is encoded once for all who
// ask: queries and pushes of every protocol. It is bounded in bytes, and forgets
// what was not asked for lately. It is safe for concurrent use.
type Encoder struct {
	budget  int
	scratch sync.Pool // of *[]byte: where forms are built

	mu   sync.Mutex
	kept []*wireForm // in the order of the clock hand
	used int         // bytes of kept
}

// wireForm is one encoding of one view.
type wireForm struct {
	view  *registry.View
	key   string
	bytes []byte
	asked atomic.Bool // since the hand last passed
}

// DefaultEncoderBudget is 8 MiB.
const DefaultEncoderBudget = 8 << 20

// formsPerView bounds how many forms of one view are kept, so that odd filters
// cannot make look-ups slow.
const formsPerView = 16

// formOverhead is what a form costs beside its bytes.
const formOverhead = 160

// NewEncoder returns an encoder that keeps at most budget bytes.
func NewEncoder(budget int) *Encoder { return &Encoder{budget: budget} }

// Encode returns the form of view that key names, building it when it is not
// kept. key must name the form and every part of the query that shapes it. build
// appends to its argument. The bytes are shared and must not be changed; they
// stay valid as long as they are held.
func (e *Encoder) Encode(view *registry.View, key string, build func([]byte) []byte) []byte {
	if f, ok := view.Encodings.Get(key).(*wireForm); ok {
		if !f.asked.Load() {
			f.asked.Store(true)
		}
		return f.bytes
	}
	room, _ := e.scratch.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	*room = build((*room)[:0])
	form := bytes.Clone(*room) // no longer than it needs to be
	e.scratch.Put(room)
	e.keep(&wireForm{view: view, key: key, bytes: form})
	return form
}

func (f *wireForm) size() int { return len(f.bytes) + len(f.key) + formOverhead }

func (e *Encoder) keep(f *wireForm) {
	if f.size() > e.budget/2 || f.view.Encodings.Len() >= formsPerView {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f.view.Encodings.Add(f.key, f)
	e.kept = append(e.kept, f)
	e.used += f.size()
	for e.used > e.budget {
		e.evict()
	}
}

// evict looks at the form under the hand: one that was asked for since the last
// time, of a view that is still the present one, gets another turn.
func (e *Encoder) evict() {
	f := e.kept[0]
	e.kept[0] = nil
	e.kept = e.kept[1:]
	if f.asked.Swap(false) && !f.view.Stale() {
		e.kept = append(e.kept, f)
		return
	}
	f.view.Encodings.Remove(f.key)
	e.used -= f.size()
}

// Used returns the bytes that are kept now.
func (e *Encoder) Used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.used
}
