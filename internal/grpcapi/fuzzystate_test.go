package grpcapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// watcher is a fuzzy state with the messages that it is being told.
type watcher struct {
	fuzzyState
	sent []fuzzyMessage
}

// drain takes what is to be told now, and says it: those of a batch with its number,
// changes in the order of their names.
func (w *watcher) drain() string {
	var said, changes []string
	for {
		m, ok := w.next()
		if !ok {
			slices.Sort(changes)
			return strings.Join(append(said, changes...), " ")
		}
		w.sent = append(w.sent, m)
		if !m.isSync {
			changes = append(changes, sign(m.change))
			continue
		}
		var batch strings.Builder
		for _, c := range m.sync.Changes {
			batch.WriteString(sign(c))
		}
		said = append(said, fmt.Sprintf("%s %d/%d:%s", word(m.sync.Kind), m.sync.Batch, m.sync.Batches, batch.String()))
	}
}

// sign is a service that is there with +, else -.
func sign(c grpcv2.FuzzyChange) string {
	if c.Change == grpcv2.AddService {
		return "+" + c.Service
	}
	return "-" + c.Service
}

func word(kind string) string {
	switch kind {
	case grpcv2.SyncInit:
		return "init"
	case grpcv2.SyncDiff:
		return "diff"
	case grpcv2.SyncFinish:
		return "end"
	default:
		return kind
	}
}

// settle says what became of all that is being told.
func (w *watcher) settle(how outcome) {
	for _, m := range w.sent {
		w.settled(m, how)
	}
	w.sent = nil
}

// The steps of a scenario.
type step struct {
	name string
	do   func(*watcher)
	want string // what is told then
}

func begin(matching, known string, initializing bool) func(*watcher) {
	return func(w *watcher) {
		w.begin(strings.Fields(matching), strings.Fields(known), initializing)
		w.live = true
	}
}

func note(changes ...string) func(*watcher) {
	return func(w *watcher) {
		for _, c := range changes {
			w.note(c[1:], c[0] == '+')
		}
	}
}

func settle(how outcome) func(*watcher) { return func(w *watcher) { w.settle(how) } }

func unsent(w *watcher) {
	for _, m := range w.sent {
		w.unsent(m)
	}
	w.sent = nil
}

func retry(w *watcher) { w.retry() }

func TestFuzzyState(t *testing.T) {
	for name, steps := range map[string][]step{
		"nothing before the answer is written": {
			{"begins", func(w *watcher) { w.begin([]string{"a"}, nil, true) }, ""},
			{"a change", note("+b"), ""},
			{"is written", func(w *watcher) { w.live = true }, "init 1/1:+a"},
			{"known", settle(done), "end 1/1:"},
			{"over", settle(done), "+b"},
		},
		"a batch at a time": {
			{"begins", begin("a b c d e f g h i j k", "", true), "init 1/2:+a+b+c+d+e+f+g+h+i+j"},
			{"nothing beside it", note("+z"), ""},
			{"known", settle(done), "init 2/2:+k"},
			{"known", settle(done), "end 1/1:"},
			{"over", settle(done), "+z"},
			{"known", settle(done), ""},
		},
		"one who comes back is told the difference": {
			{"begins", begin("a b", "b gone", false), "diff 1/1:+a"},
			{"known", settle(done), "-gone"},
			{"known", settle(done), ""},
		},
		"nothing is new": {
			{"begins", begin("a", "a", false), ""},
		},
		"no service at all": {
			{"begins", begin("", "", true), "end 1/1:"},
			{"known", settle(done), ""},
		},
		"a batch without an answer is told again": {
			{"begins", begin("a", "", true), "init 1/1:+a"},
			{"late", settle(overdue), "init 1/1:+a"},
			{"known", settle(done), "end 1/1:"},
			{"late", settle(overdue), "end 1/1:"},
			{"known", settle(done), ""},
		},
		"a batch that is refused waits": {
			{"begins", begin("a", "", true), "init 1/1:+a"},
			{"refused", settle(refused), ""},
			{"a change does not wake it", note("+b"), ""},
			{"tick", retry, "init 1/1:+a"},
			{"known", settle(done), "end 1/1:"},
			{"known", settle(done), "+b"},
		},
		"what could not be sent waits": {
			{"begins", begin("a", "", true), "init 1/1:+a"},
			{"no stream", unsent, ""},
			{"tick", retry, "init 1/1:+a"},
			{"known", settle(done), "end 1/1:"},
			{"known", settle(done), ""},
			{"a change", note("+b"), "+b"},
			{"no stream", unsent, ""},
			{"tick", retry, "+b"},
			{"nothing stalled", retry, ""},
		},
		"changes": {
			{"begins", begin("a", "a", false), ""},
			{"two", note("+b", "-a"), "+b -a"},
			{"known", settle(done), ""},
			{"as known", note("+b", "-a"), ""},
			{"one", note("-b"), "-b"},
			{"there again meanwhile", note("+b"), ""},
			{"gone is known, so it comes", settle(done), "+b"},
			{"gone meanwhile", note("-b"), ""},
			{"not known to be there, so nothing is owed", settle(overdue), ""},
		},
		"a change without an answer is told again": {
			{"begins", begin("", "", false), ""},
			{"one", note("+a"), "+a"},
			{"late", settle(overdue), "+a"},
			{"refused", settle(refused), ""},
			{"tick", retry, "+a"},
			{"known", settle(done), ""},
		},
		"taken back": {
			{"begins", begin("a b", "", true), "init 1/1:+a+b"},
			{"cancelled", func(w *watcher) { w.live = false }, ""},
			{"known", settle(done), ""},
			{"a change", note("+c"), ""},
		},
		"more at a time than are told": {
			{
				"changes", func(w *watcher) {
					begin("", "", false)(w)
					for n := range maxFlying + 2 {
						w.note(fmt.Sprintf("%02d", n), true)
					}
					for range maxFlying {
						if _, ok := w.next(); !ok {
							t.Error("fewer are told than may be")
						}
					}
				}, "",
			},
		},
	} {
		w := &watcher{}
		for n, s := range steps {
			s.do(w)
			if got := w.drain(); got != s.want {
				t.Errorf("%s: step %d, %s: told %q, want %q", name, n+1, s.name, got, s.want)
			}
		}
	}
}

// A watch tells of so many services, whatever matches, and of others in their place.
func TestFuzzyStateLimit(t *testing.T) {
	var matching []string
	for n := range maxMatches + 1 {
		matching = append(matching, fmt.Sprintf("s%03d", n))
	}
	w := &watcher{}
	w.live = true
	if !w.begin(matching, nil, false) {
		t.Error("nobody is told that there are too many")
	}
	for w.drain() != "" {
		w.settle(done)
	}
	if len(w.told) != maxMatches {
		t.Errorf("%d are told, want %d", len(w.told), maxMatches)
	}
	w.note("more", true)
	if got := w.drain(); got != "" || len(w.present) > 0 {
		t.Errorf("told %q beyond the limit, %d are kept", got, len(w.present))
	}
	w.note(matching[0], false)
	w.drain()
	w.settle(done)
	w.note("more", true)
	if got := w.drain(); got != "+more" {
		t.Errorf("told %q, want the one that there is room for", got)
	}
}
