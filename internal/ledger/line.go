package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"
)

// Every line, header or record, is a JSON object that ends with its checksum:
//
//	{"q":17,"t":1764556800123,"k":"registered",…,"z":"1c291ca3"}
//
// The checksum is the CRC-32C of everything before its member, in hex.
const (
	sealKey  = `,"z":"`
	sealEnd  = `"}`
	sealSize = len(sealKey) + 8 + len(sealEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSeal completes the line that begins at b[start:] and still lacks its
// closing brace.
func appendSeal(b []byte, start int) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(b[start:], castagnoli))
	b = append(b, sealKey...)
	b = hex.AppendEncode(b, sum[:])
	return append(b, sealEnd+"\n"...)
}

// intact reports whether line, without its newline, is as it was written.
func intact(line []byte) bool {
	body := len(line) - sealSize
	if body < 0 || string(line[body:body+len(sealKey)]) != sealKey || string(line[len(line)-len(sealEnd):]) != sealEnd {
		return false
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], line[body+len(sealKey):len(line)-len(sealEnd)]); err != nil {
		return false
	}
	return binary.BigEndian.Uint32(sum[:]) == crc32.Checksum(line[:body], castagnoli)
}

// head is what stands at the beginning of every record.
type head struct {
	seq  uint64
	at   int64  // milliseconds since the Unix epoch
	kind []byte // part of the line, as JSON text without its quotes
}

// parseHead reads the head of a record. ok is false when line is no record,
// such as the header of a segment.
func parseHead(line []byte) (h head, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"`+fieldSeq+`":`))
	if !ok {
		return head{}, false
	}
	seq, rest, ok := bytes.Cut(rest, []byte(`,"`+fieldTime+`":`))
	if !ok {
		return head{}, false
	}
	at, rest, ok := bytes.Cut(rest, []byte(`,"`+fieldKind+`":"`))
	if !ok {
		return head{}, false
	}
	kind, _, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return head{}, false
	}
	var errSeq, errAt error
	h.seq, errSeq = strconv.ParseUint(string(seq), 10, 64)
	h.at, errAt = strconv.ParseInt(string(at), 10, 64)
	h.kind = kind
	return h, errSeq == nil && errAt == nil
}

// liner cuts blocks into lines. It keeps its memory from block to block, so each
// reader has its own.
type liner struct {
	backwards bool
	starts    []int
}

// lines yields the lines of block without their newlines, from its end when
// backwards. A last line that lacks its newline counts as one.
func (l *liner) lines(block []byte) iter.Seq[[]byte] {
	if l.backwards {
		return func(yield func([]byte) bool) { l.linesBackwards(block, yield) }
	}
	return func(yield func([]byte) bool) {
		for len(block) > 0 {
			line, rest, _ := bytes.Cut(block, []byte{'\n'})
			if !yield(line) {
				return
			}
			block = rest
		}
	}
}

// linesBackwards finds the lines forwards, where the search is quick, and yields
// them in reverse.
func (l *liner) linesBackwards(block []byte, yield func([]byte) bool) {
	l.starts = l.starts[:0]
	for at := 0; at < len(block); {
		l.starts = append(l.starts, at)
		n := bytes.IndexByte(block[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	end := len(block)
	for _, start := range slices.Backward(l.starts) {
		if !yield(bytes.TrimSuffix(block[start:end], []byte{'\n'})) {
			return
		}
		end = start
	}
}
