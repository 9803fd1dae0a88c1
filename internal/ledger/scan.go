package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// scan says which records to visit and in what order.
type scan struct {
	after, before uint64 // sequence numbers, neither included
	since, until  int64  // wall milliseconds, both included
	backwards     bool   // newest first
	budget        int64  // bytes of segments after which to stop
	// visit returns false to stop. line is valid during the call.
	visit func(line []byte, h head) bool

	cutter liner
}

// scanned is how a scan ended.
type scanned struct {
	stopped bool   // by visit or the budget, not for want of records
	last    uint64 // the last record looked at
	damaged int    // lines that were skipped
	bytes   int64  // of segments
}

// part is a piece of the history: a segment, or lines in memory.
type part struct {
	segment *segment
	path    string // of the segment
	size    int64
	data    []byte
	first   uint64
	last    uint64
	times   span
}

// scan visits records in memory and in segments. Records that are emitted
// meanwhile are not visited.
func (l *Ledger) scan(ctx context.Context, s scan) (scanned, error) {
	parts, held := l.capture()
	defer l.release(held...)
	s.cutter.backwards = s.backwards
	if s.backwards {
		slices.Reverse(parts)
	}
	var end scanned
	for i := range parts {
		p := &parts[i]
		if p.last <= s.after || p.first >= s.before || !p.times.overlaps(s.since, s.until) {
			continue
		}
		if err := l.scanPart(ctx, &s, p, &end); err != nil {
			return end, err
		}
		if end.stopped {
			break
		}
	}
	return end, nil
}

// capture returns the parts of the history, oldest first, and the chunks that it
// holds for them. Segments end where memory begins.
func (l *Ledger) capture() (parts []part, held []*chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest, ok := l.mem.first()
	if !ok {
		oldest = l.next
	}
	for _, s := range l.segments {
		if s.first >= oldest {
			break
		}
		parts = append(parts, part{
			segment: s, path: s.path, size: s.size,
			first: s.first, last: min(s.last, oldest-1), times: s.times,
		})
	}
	if l.cfg.Dir != "" && oldest > l.onDisk+1 { // dropped, and the writer has not said so yet
		gap := lostPiece(l.onDisk+1, oldest-1)
		parts = append(parts, part{data: gap.data, first: gap.first, last: gap.last, times: gap.times})
	}
	for _, c := range l.mem.chunks {
		if c.first != 0 {
			c.holders++
			held = append(held, c)
			parts = append(parts, part{data: c.buf, first: c.first, last: c.last, times: c.times})
		}
	}
	return parts, held
}

func (l *Ledger) scanPart(ctx context.Context, s *scan, p *part, end *scanned) error {
	if p.segment == nil {
		s.block(p, p.data, &survey{}, end)
		return ctx.Err()
	}
	f, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) { // it grew too old meanwhile
		return nil
	}
	if err != nil {
		return store.Explain("open", p.path, err)
	}
	defer f.Close()
	var seen survey
	through := true
	for block, err := range blocks(f, p.size, blockBytes, s.backwards) {
		if err != nil {
			return store.Explain("read", p.path, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		end.bytes += int64(len(block))
		if through = !s.block(p, block, &seen, end); !through {
			break
		}
		if end.bytes >= s.budget && end.last != 0 {
			end.stopped, through = true, false
			break
		}
	}
	end.damaged += seen.damaged
	l.learn(p.segment, seen, through)
	return nil
}

// block visits the lines of one block and reports whether the part is done with.
func (s *scan) block(p *part, block []byte, seen *survey, end *scanned) (done bool) {
	for line := range s.cutter.lines(block) {
		h, ok := seen.look(line)
		if !ok || h.seq > p.last {
			continue
		}
		below, above := h.seq <= s.after, h.seq >= s.before
		switch {
		case below && s.backwards, above && !s.backwards: // and so is all that follows
			return true
		case below, above:
			continue
		}
		end.last = h.seq
		if h.at >= s.since && h.at <= s.until && !s.visit(line, h) {
			end.stopped = true
			return true
		}
	}
	return false
}

// learn keeps what reading a segment told about it, and logs damage when it is
// first seen. The times count only if the segment was read through.
func (l *Ledger) learn(s *segment, seen survey, through bool) {
	l.mu.Lock()
	if through && !s.times.known {
		s.times = seen.times
	}
	worse := seen.damaged > s.damaged
	s.damaged = max(s.damaged, seen.damaged)
	l.mu.Unlock()
	if worse {
		l.log.Warn("history has damaged lines, they are skipped", "file", s.path, "lines", seen.damaged)
	}
}
