package ledger

import (
	"slices"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	minChunkBytes = 4 << 10
	// maxChunkBytes keeps one write to a file, and what is dropped at once when
	// a bound is reached, small.
	maxChunkBytes = 64 << 10
	// lineRoom is the free space below which a chunk is not begun to be filled
	// further: a usual record is a third of it, and a larger one only makes its
	// chunk grow.
	lineRoom = 1 << 10
	// spareChunks are kept for reuse, so that a steady stream of records does
	// not feed the garbage collector.
	spareChunks = 4
)

// chunk is a run of encoded records. Bytes once appended do not change, so a
// slice of them, taken under the lock, may be read without it, as long as the
// chunk is held.
type chunk struct {
	buf         []byte
	first, last uint64 // sequence numbers; first is 0 while empty
	times       span
	written     int // bytes that are in a segment
	holders     int // readers and the writer: while there are any, buf is not reused
}

// memory is the recent history and the backlog of the writer in one list of
// chunks. It does no locking of its own.
type memory struct {
	chunkBytes int
	keep       int // bytes that remain readable after they were written
	limit      int // bytes with the backlog

	chunks []*chunk // oldest first
	bytes  int      // capacity of all chunks
	spare  []*chunk // empty ones
}

// tail returns the chunk that takes the next record.
func (m *memory) tail() *chunk {
	if n := len(m.chunks); n > 0 {
		c := m.chunks[n-1]
		if len(c.buf)+lineRoom <= m.chunkBytes || c.first == 0 {
			return c
		}
	}
	c := m.blank()
	m.chunks = append(m.chunks, c)
	m.bytes += cap(c.buf)
	return c
}

func (m *memory) blank() *chunk {
	if n := len(m.spare); n > 0 {
		c := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return c
	}
	return &chunk{buf: make([]byte, 0, m.chunkBytes)}
}

// append encodes one record and returns its size.
func (m *memory) append(seq uint64, e *registry.Event) int {
	c := m.tail()
	size, room := len(c.buf), cap(c.buf)
	c.buf = appendRecord(c.buf, seq, e, 0)
	m.bytes += cap(c.buf) - room
	if c.first == 0 {
		c.first = seq
	}
	c.last = seq
	c.times.add(e.At.Wall)
	return len(c.buf) - size
}

// trim drops the oldest chunks: written ones past the bound of the history, and
// any past the bound of the backlog. onDisk is the last sequence number that is
// in a segment. The newest chunk stays.
func (m *memory) trim(onDisk uint64) {
	n := 0
	for n < len(m.chunks)-1 {
		c := m.chunks[n]
		if m.bytes <= m.keep || m.bytes <= m.limit && c.last > onDisk {
			break
		}
		m.bytes -= cap(c.buf)
		m.recycle(c)
		n++
	}
	m.chunks = slices.Delete(m.chunks, 0, n)
}

// recycle keeps c for reuse, unless someone reads it or it grew.
func (m *memory) recycle(c *chunk) {
	if c.holders == 0 && cap(c.buf) == m.chunkBytes && len(m.spare) < spareChunks {
		*c = chunk{buf: c.buf[:0]}
		m.spare = append(m.spare, c)
	}
}

// first returns the sequence number of the oldest record in memory; ok is false
// when there is none.
func (m *memory) first() (seq uint64, ok bool) {
	if len(m.chunks) == 0 || m.chunks[0].first == 0 {
		return 0, false
	}
	return m.chunks[0].first, true
}

// span is a range of wall times in milliseconds. The wall clock may step, so
// the records of a span need not be in its order.
type span struct {
	min, max int64
	known    bool
}

func (s *span) add(at int64) {
	if !s.known {
		*s = span{min: at, max: at, known: true}
		return
	}
	s.min = min(s.min, at)
	s.max = max(s.max, at)
}

// overlaps reports whether a time between from and until, both included, may be
// in s. An unknown span overlaps everything.
func (s *span) overlaps(from, until int64) bool {
	return !s.known || s.min <= until && s.max >= from
}
