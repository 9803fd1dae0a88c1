package naming

import (
	"bytes"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Those who ask for a form while it is built wait for it; also when it is too
// large to be kept, and when it was the first builder that failed.
func TestEncodeBuildsOnce(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 1 << 20} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(size, " fails ", fails), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { encodeTogether(t, size, fails) })
			})
		}
	}
}

func encodeTogether(t *testing.T, size int, fails bool) {
	const askers = 40
	e, view := NewEncoder(1<<20), &registry.View{}
	var builds atomic.Int32
	start := make(chan struct{})
	answers := make(chan []byte, askers)
	for range askers {
		go func() {
			defer func() {
				if recover() != nil {
					answers <- nil
				}
			}()
			answers <- e.Encode(view, "form", func(b []byte) []byte {
				n := builds.Add(1)
				<-start
				if fails && n == 1 {
					panic("the first fails")
				}
				return append(b, make([]byte, size)...)
			})
		}()
	}
	synctest.Wait()
	close(start)
	var first []byte
	none := 0
	for range askers {
		switch b := <-answers; {
		case b == nil:
			none++
		case first == nil:
			first = b
		case &b[0] != &first[0] || len(b) != size:
			t.Fatal("two askers have copies of their own")
		}
	}
	want, failed := int32(1), 0
	if fails {
		want, failed = 2, 1
	}
	if builds.Load() != want || none != failed {
		t.Errorf("built %d times, %d failed; want %d, %d", builds.Load(), none, want, failed)
	}
}

// A form is kept when it is asked for again, and goes when its view is no longer the
// present one and others come, although there is room.
func TestFormsOfOldViewsGo(t *testing.T) {
	t.Parallel()
	r, e := newRig(t), NewEncoder(1<<20)
	ask := func() int {
		e.Encode(r.store.View(orders), "form", func(b []byte) []byte { return append(b, "hosts"...) })
		return e.Used()
	}
	const form = len("form") + len("hosts") + formOverhead
	for port := range int32(50) {
		r.register(registration(key("10.0.0.1", 8080+port, "DEFAULT")))
		before := e.Used()
		if used := ask(); used != before {
			t.Fatalf("%d bytes are kept of what was asked for once, %d before", used, before)
		}
		if used := ask(); used < form || used > 2*form {
			t.Fatalf("%d bytes are kept of one service, of which a form has %d", used, form)
		}
	}
}

// A form too large to be kept is shared while somebody has it, and then forgotten.
func TestLargeFormIsSharedWhileInUse(t *testing.T) {
	e, view := NewEncoder(1<<20), &registry.View{}
	build := func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 1<<20)...) }
	held := e.Encode(view, "form", build)
	runtime.GC()
	again := e.Encode(view, "form", func([]byte) []byte { t.Error("built again while in use"); return []byte("y") })
	if &again[0] != &held[0] || len(again) != len(held) {
		t.Error("the second asker has bytes of its own")
	}
	if e.Used() != 0 {
		t.Errorf("%d bytes are kept of a form that is too large for that", e.Used())
	}
	runtime.KeepAlive(held)
	for range 1000 { // the cleanup runs on a goroutine of the runtime
		runtime.GC()
		if e.sharing() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Error("a form that nobody has is not forgotten")
}

// sharing returns how many large forms are in use.
func (e *Encoder) sharing() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.large)
}
