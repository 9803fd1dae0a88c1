package ledger

import (
	"errors"
	"io/fs"
	"os"

	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// Open reads what is in the directory and makes the ledger ready for records.
// floor is the sequence number of the snapshot from which the registry will be
// rebuilt, 0 without one; see [Ledger.SetRecoveryFloor].
//
// A last line that a crash cut short is removed. The error is [store.ErrNewer],
// or says what cannot be read or written.
func (l *Ledger) Open(floor uint64) error {
	ending, err := l.openSegments()
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.floor = floor
	last := max(ending.seq, floor)
	switch {
	case last == 0:
		ending.how = endedNever
	case ending.how != endedInOrder || ending.seq < floor:
		ending.how = endedByACrash
		last += crashLeap
	}
	l.next, l.onDisk = last+1, last
	l.mu.Unlock()
	l.note(Started, ending.how)
	return nil
}

// ending is how the segments end.
type ending struct {
	seq uint64
	how string // endedInOrder, or empty
}

func (l *Ledger) openSegments() (ending, error) {
	if l.cfg.Dir == "" {
		return ending{}, nil
	}
	if err := store.MakeDir(l.cfg.Dir); err != nil {
		return ending{}, err
	}
	segments, err := listSegments(l.cfg.Dir)
	if err != nil {
		return ending{}, err
	}
	for _, s := range segments {
		if err := s.readHeader(); err != nil {
			return ending{}, err
		}
	}
	var end ending
	for len(segments) > 0 {
		newest := segments[len(segments)-1]
		found, err := l.mend(newest)
		if err != nil {
			return ending{}, err
		}
		end = ending{seq: max(end.seq, found.seq), how: found.how}
		if newest.size > 0 {
			break
		}
		// The crash came before its first line was complete.
		if err := os.Remove(newest.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ending{}, store.Explain("remove", newest.path, err)
		}
		segments = segments[:len(segments)-1]
	}
	l.mu.Lock()
	l.segments = segments
	l.mu.Unlock()
	return end, nil
}

// mend reads the newest segment through, cuts a torn line off its end, and
// completes what is known of it.
func (l *Ledger) mend(s *segment) (ending, error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return ending{}, store.Explain("open", s.path, err)
	}
	defer f.Close()
	end := ending{seq: s.first - 1}
	take := func(line []byte) {
		h, ok := s.look(line)
		if !ok {
			return
		}
		end = ending{seq: h.seq}
		if string(h.kind) == string(Stopped) {
			end.how = endedInOrder
		}
	}
	var complete int64
	var cutter liner
	var tail []byte
	for block, err := range blocks(f, s.size, blockBytes, false) {
		if err != nil {
			return ending{}, store.Explain("read", s.path, err)
		}
		whole := cutFront(block)
		for line := range cutter.lines(whole) {
			take(line)
		}
		complete += int64(len(whole))
		tail = block[len(whole):]
	}
	if err := l.mendTail(f, s, complete, tail, take); err != nil {
		return ending{}, err
	}
	s.last = max(end.seq, s.first-1)
	if s.damaged > 0 {
		l.log.Warn("history has damaged lines, they are skipped", "file", s.path, "lines", s.damaged)
	}
	return end, nil
}

// mendTail deals with what stands behind the last newline: a line that lacks
// nothing else is completed, anything else goes.
func (l *Ledger) mendTail(f *os.File, s *segment, complete int64, tail []byte, take func([]byte)) error {
	if len(tail) == 0 {
		return nil
	}
	if intact(tail) {
		if _, err := f.WriteAt([]byte{'\n'}, s.size); err != nil {
			return store.Explain("mend", s.path, err)
		}
		take(tail)
		s.size++
		return nil
	}
	if err := f.Truncate(complete); err != nil {
		return store.Explain("mend", s.path, err)
	}
	l.log.Warn("history ended in a torn line, it is dropped", "file", s.path, "bytes", s.size-complete)
	s.size = complete
	return nil
}

var _ registry.Sink = (*Ledger)(nil)
