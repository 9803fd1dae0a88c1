package naming

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Encoder keeps wire forms of views, so that each is encoded once for all who
// ask: queries and pushes of every protocol. A form is kept when it is asked for
// again, so that services that are looked up once for each change cost no memory;
// only what is dear to build is kept at once. It is bounded in bytes, and forgets
// what was not asked for lately. A form that is too large to be kept is shared all
// the same as long as somebody has it. It is safe for concurrent use.
type Encoder struct {
	budget  int
	scratch sync.Pool // of *[]byte: where forms are built

	mu     sync.Mutex
	kept   []*wireForm // in the order of the clock hand
	used   int         // bytes of kept
	making map[formID]*making
	large  map[formID]largeForm // those in use that are not kept
}

// formID names one form of one view.
type formID struct {
	view *registry.View
	key  string
}

// making is a form that is being built. Others who ask for it wait until it is
// done; bytes is nil then if that has failed.
type making struct {
	done  sync.WaitGroup
	again bool // it was asked for before
	bytes []byte
}

// largeForm finds the bytes of a form as long as somebody else holds them.
type largeForm struct {
	first weak.Pointer[byte]
	size  int
}

// bytes returns nil when nobody holds them any more.
func (f largeForm) bytes() []byte {
	first := f.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, f.size) // first is that of so many, see share
}

// wireForm is one encoding of one view.
type wireForm struct {
	view  *registry.View
	key   string
	bytes []byte
	asked atomic.Bool // since the hand last passed
}

// DefaultEncoderBudget is 4 MiB: the lists of some 1,200 services of ten instances.
const DefaultEncoderBudget = 4 << 20

// formsPerView bounds how many forms of one view are kept, so that odd filters
// cannot make look-ups slow.
const formsPerView = 16

// formOverhead is what a form costs beside its bytes.
const formOverhead = 160

// shareBytes is from which size on a form that is not kept is shared, and one that is
// asked for first is kept, in bytes. Smaller ones are soon built again.
const shareBytes = 64 << 10

// NewEncoder returns an encoder that keeps at most budget bytes.
func NewEncoder(budget int) *Encoder {
	return &Encoder{budget: budget, making: map[formID]*making{}, large: map[formID]largeForm{}}
}

// Encode returns the form of view that key names, building it when it is not
// kept. key must name the form and every part of the query that shapes it. build
// appends to its argument, at least one byte; it runs once for all who ask
// meanwhile, who wait for it. The bytes are shared and must not be changed; they
// stay valid as long as they are held.
func (e *Encoder) Encode(view *registry.View, key string, build func([]byte) []byte) []byte {
	if bytes := keptForm(view, key); bytes != nil {
		return bytes
	}
	id := formID{view, key}
	for {
		bytes, m, mine := e.claim(id)
		switch {
		case bytes != nil:
			return bytes
		case mine:
			return e.build(id, m, build)
		}
		if m.done.Wait(); m.bytes != nil {
			return m.bytes
		}
	}
}

func keptForm(view *registry.View, key string) []byte {
	f, ok := view.Encodings.Get(key).(*wireForm)
	if !ok {
		return nil
	}
	if !f.asked.Load() {
		f.asked.Store(true)
	}
	return f.bytes
}

// claim returns the bytes of a form, or who builds it, which may be the caller.
func (e *Encoder) claim(id formID) (bytes []byte, m *making, mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m = e.making[id]; m != nil {
		return nil, m, false
	}
	if bytes = keptForm(id.view, id.key); bytes != nil {
		return bytes, nil, false
	}
	if f, ok := e.large[id]; ok {
		if bytes = f.bytes(); bytes != nil {
			return bytes, nil, false
		}
	}
	m = &making{again: id.view.Encodings.Again(id.key)}
	m.done.Add(1)
	e.making[id] = m
	return nil, m, true
}

func (e *Encoder) build(id formID, m *making, build func([]byte) []byte) []byte {
	defer e.finish(id, m)
	room, _ := e.scratch.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	form := build((*room)[:0])
	switch {
	case len(form) < shareBytes:
		*room = form
		form = bytes.Clone(form) // no longer than it needs to be
		e.scratch.Put(room)
	case cap(form)-len(form) > len(form)/8: // its memory is too large for the pool
		form = bytes.Clone(form)
	}
	m.bytes = form
	return form
}

// finish ends the wait for a form, also after a panic.
func (e *Encoder) finish(id formID, m *making) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.making, id)
	if m.bytes != nil && (m.again || len(m.bytes) >= shareBytes) {
		e.keep(&wireForm{view: id.view, key: id.key, bytes: m.bytes})
	}
	m.done.Done()
}

func (f *wireForm) size() int { return len(f.bytes) + len(f.key) + formOverhead }

// keep is called with e.mu held. With each form that comes the hand moves on by one,
// so that those of views that are no more go although there would be room.
func (e *Encoder) keep(f *wireForm) {
	if f.size() > e.budget/2 || f.view.Encodings.Len() >= formsPerView {
		if len(f.bytes) >= shareBytes {
			e.share(formID{f.view, f.key}, f.bytes)
		}
		return
	}
	f.view.Encodings.Add(f.key, f)
	e.kept = append(e.kept, f)
	e.used += f.size()
	e.turn(false)
	for e.used > e.budget {
		e.turn(true)
	}
}

// share lets others find bytes until the garbage collector has taken them. It is
// called with e.mu held.
func (e *Encoder) share(id formID, bytes []byte) {
	first := &bytes[0]
	e.large[id] = largeForm{weak.Make(first), len(bytes)}
	runtime.AddCleanup(first, e.forget, id)
}

// forget drops a large form that nobody holds, unless it was built again since.
func (e *Encoder) forget(id formID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.large[id]; ok && f.first.Value() == nil {
		delete(e.large, id)
	}
}

// turn moves the hand on by one form. It goes when it is of a view that is no longer
// the present one, and in a cache that is full also when it was not asked for since
// the hand last passed.
func (e *Encoder) turn(full bool) {
	f := e.kept[0]
	e.kept[0] = nil
	e.kept = e.kept[1:]
	if !f.view.Stale() && (!full || f.asked.Swap(false)) {
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
