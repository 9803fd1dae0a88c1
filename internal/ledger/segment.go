package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// The name of a segment is history-<first sequence number, 20 digits>.ndjson.
const (
	segmentPrefix = "history-"
	segmentSuffix = ".ndjson"
)

// formatVersion is in the header of every segment. A larger one than ours is
// refused.
const formatVersion = 1

// blockBytes is how much of a segment is read at once.
const blockBytes = 256 << 10

// segment is what is known of one file. The last one of a ledger grows, the
// others do not change until they are deleted.
type segment struct {
	path    string
	first   uint64 // from the name: no record in it is older
	last    uint64 // no record in it is newer
	size    int64  // bytes that are complete lines
	begun   time.Time
	touched time.Time
	survey  // nothing is known of a segment until it was written or read through
}

// survey is what reading lines tells about them.
type survey struct {
	times   span
	damaged int // lines
}

// look verifies a line and notes its time, or its damage. ok is false for what is
// no record.
func (s *survey) look(line []byte) (h head, ok bool) {
	if !intact(line) {
		s.damaged++
		return head{}, false
	}
	if h, ok = parseHead(line); ok {
		s.times.add(h.at)
	}
	return h, ok
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%020d%s", segmentPrefix, first, segmentSuffix))
}

// listSegments returns the segments of dir, oldest first. last is derived from
// the next one's name, and not set for the newest.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir) // sorted, and so are the numbers in the names
	if err != nil {
		return nil, store.Explain("list", dir, err)
	}
	var found []*segment
	for _, entry := range entries {
		digits, isSegment := strings.CutPrefix(entry.Name(), segmentPrefix)
		digits, hasSuffix := strings.CutSuffix(digits, segmentSuffix)
		first, err := strconv.ParseUint(digits, 10, 64)
		if !isSegment || !hasSuffix || err != nil || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, store.Explain("list", dir, err)
		}
		if n := len(found); n > 0 {
			found[n-1].last = first - 1
		}
		found = append(found, &segment{
			path: filepath.Join(dir, entry.Name()), first: first, size: info.Size(),
			begun: info.ModTime(), touched: info.ModTime(),
		})
	}
	return found, nil
}

// headerStart tells the header from a record.
const headerStart = `{"rollcall":"history",`

// header returns the first line of a segment.
func header(begun time.Time) []byte {
	b := fmt.Appendf(nil, `%s"format":%d,"begun":%q`, headerStart, formatVersion, begun.UTC().Format(time.RFC3339))
	return appendSeal(b, 0)
}

// readHeader refuses a segment of a newer format, and learns when it was begun. A
// header that cannot be read is no reason to refuse: the lines are verified one by
// one, and it counts as a damaged one.
func (s *segment) readHeader() error {
	f, err := os.Open(s.path)
	if err != nil {
		return store.Explain("open", s.path, err)
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return store.Explain("read", s.path, err)
	}
	line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
	if !bytes.HasPrefix(line, []byte(headerStart)) || !intact(line) {
		return nil
	}
	for m := membersOf(string(line)); m.next(); {
		switch m.key {
		case "format":
			if m.integer() > formatVersion {
				return fmt.Errorf("%w: %s has format %s and this version understands up to %d",
					store.ErrNewer, s.path, m.raw, formatVersion)
			}
		case "begun":
			if t, err := time.Parse(time.RFC3339, m.text()); err == nil {
				s.begun = t
			}
		}
	}
	return nil
}

// blocks yields the content of f up to size in pieces of complete lines, the
// last one first when backwards. A piece is valid until the next one. It has at
// most n bytes, unless one line has more. Content after the last newline is
// yielded too.
func blocks(f io.ReaderAt, size, n int64, backwards bool) iter.Seq2[[]byte, error] {
	cut := cutFront
	if backwards {
		cut = cutBack
	}
	return func(yield func([]byte, error) bool) {
		buf := make([]byte, min(size, n))
		low, high := int64(0), size // what is still to be yielded
		for low < high {
			n := min(high-low, int64(len(buf)))
			at := low
			if backwards {
				at = high - n
			}
			if _, err := f.ReadAt(buf[:n], at); err != nil {
				yield(nil, err)
				return
			}
			block := buf[:n]
			if n < high-low {
				if block = cut(block); len(block) == 0 { // one line is longer than buf
					buf = make([]byte, 2*len(buf))
					continue
				}
			}
			if !yield(block, nil) {
				return
			}
			if backwards {
				high -= int64(len(block))
			} else {
				low += int64(len(block))
			}
		}
	}
}

// cutFront returns b up to its last newline.
func cutFront(b []byte) []byte { return b[:bytes.LastIndexByte(b, '\n')+1] }

// cutBack returns b from behind its first newline: what stands before belongs to
// a line that begins before b.
func cutBack(b []byte) []byte {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil
	}
	return b[i+1:]
}
