package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A framed stream is a header, any number of frames, and an end mark:
//
//	header  "RLCL" | layout u8 = 1 | len(name) u8 | version u16 | name | crc u32
//	frame   n u32 | head crc u32 | body crc u32 | n bytes
//	end     0xFFFFFFFF u32 | head crc u32
//
// Numbers are little-endian. Every checksum is CRC32C and continues the one
// before it (the header's, then head, body, head, body …), so that a frame
// that was changed, left out, repeated or moved is noticed, and the end mark
// vouches for all of the stream. The head has a checksum of its own so that a
// damaged length is not taken for a stream that was cut.
const (
	frameMagic  = "RLCL"
	frameLayout = 1
	headSize    = 12
	endMark     = 0xFFFFFFFF

	// maxFrame is the largest payload of one frame, in bytes. It bounds what a
	// reader allocates for a hostile stream.
	maxFrame = 16 << 20
	maxName  = 64 // bytes; longer names are not ours
)

// errUnfinished tells that a stream ends before its end mark.
var errUnfinished = errors.New("it ends before its end mark")

// damageError tells that bytes of a stream are not what was written.
type damageError struct {
	offset int64 // where the damaged header or frame begins, in bytes
	reason string
}

func (e *damageError) Error() string {
	return fmt.Sprintf("it is damaged at byte %d: %s", e.offset, e.reason)
}

func castagnoli(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p) // the library makes the table once
}

// frameWriter writes a framed stream. Each call is one Write to w.
type frameWriter struct {
	w   io.Writer
	crc uint32 // the last checksum written
	buf []byte // a frame on its way, reused
}

// newFrameWriter writes the header.
func newFrameWriter(w io.Writer, kind Kind) (*frameWriter, error) {
	if kind.Name == "" || len(kind.Name) > maxName {
		return nil, fmt.Errorf("the name of a stream has 1 to %d bytes, not %d", maxName, len(kind.Name))
	}
	b := append([]byte(frameMagic), frameLayout, byte(len(kind.Name)))
	b = binary.LittleEndian.AppendUint16(b, kind.Version)
	b = append(b, kind.Name...)
	f := &frameWriter{w: w, crc: castagnoli(0, b)}
	return f, f.flush(binary.LittleEndian.AppendUint32(b, f.crc))
}

// Write writes p as one frame, or more when it is larger than a frame may be.
func (f *frameWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxFrame)
		if err := f.frame(rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

func (f *frameWriter) frame(payload []byte) error {
	b := binary.LittleEndian.AppendUint32(f.buf[:0], uint32(len(payload)))
	f.crc = castagnoli(f.crc, b)
	b = binary.LittleEndian.AppendUint32(b, f.crc)
	f.crc = castagnoli(f.crc, payload)
	b = binary.LittleEndian.AppendUint32(b, f.crc)
	return f.flush(append(b, payload...))
}

// finish writes the end mark.
func (f *frameWriter) finish() error {
	b := binary.LittleEndian.AppendUint32(f.buf[:0], endMark)
	return f.flush(binary.LittleEndian.AppendUint32(b, castagnoli(f.crc, b)))
}

func (f *frameWriter) flush(b []byte) error {
	_, err := f.w.Write(b)
	if cap(b) <= 1<<20 { // one huge frame must not pin its memory
		f.buf = b
	}
	return err
}

// frameReader reads a framed stream.
type frameReader struct {
	r      *bufio.Reader
	offset int64  // where the next frame begins
	crc    uint32 // the last checksum read
	buf    []byte // a payload, reused
	rest   []byte // of the payload: what Read has not handed out
	err    error  // final
}

// newFrameReader reads the header. It refuses a stream of another name, and one
// of a version above kind's.
func newFrameReader(r io.Reader, kind Kind) (*frameReader, error) {
	f := &frameReader{r: bufio.NewReaderSize(r, 64<<10)}
	const fixed = len(frameMagic) + 4
	b := make([]byte, fixed, fixed+maxName+4)
	if err := f.fill(b); err != nil {
		return nil, err
	}
	if string(b[:len(frameMagic)]) != frameMagic || b[4] != frameLayout || b[5] == 0 || b[5] > maxName {
		return nil, f.damage("it does not begin like a file of Rollcall")
	}
	b = b[:fixed+int(b[5])+4]
	if err := f.fill(b[fixed:]); err != nil {
		return nil, err
	}
	body := b[:len(b)-4]
	f.crc = castagnoli(0, body)
	if f.crc != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, f.damage("the checksum of the header is wrong")
	}
	f.offset = int64(len(b))
	name, version := string(body[fixed:]), binary.LittleEndian.Uint16(b[6:])
	switch {
	case name != kind.Name:
		return nil, fmt.Errorf("it holds %q, not %q", name, kind.Name)
	case version > kind.Version:
		return nil, &newerStreamError{name, version, kind.Version}
	}
	return f, nil
}

// newerStreamError is a stream that a newer version wrote; it is [ErrNewer].
type newerStreamError struct {
	name              string
	version, supports uint16
}

func (e *newerStreamError) Error() string {
	return fmt.Sprintf("%q has version %d and this version of Rollcall understands up to %d", e.name, e.version, e.supports)
}

func (*newerStreamError) Is(target error) bool { return target == ErrNewer }

// Read reads the payloads of all frames as one. See [ReadStream] for its errors.
func (f *frameReader) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		next, err := f.next()
		if err != nil {
			return 0, err
		}
		f.rest = next
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next returns the next payload, valid until the next call, or [io.EOF] after
// the end mark. Every error is final.
func (f *frameReader) next() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	var payload []byte
	payload, f.err = f.frame()
	return payload, f.err
}

func (f *frameReader) frame() ([]byte, error) {
	var head [headSize]byte
	if err := f.fill(head[:8]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	crc := castagnoli(f.crc, head[:4])
	switch {
	case crc != binary.LittleEndian.Uint32(head[4:]):
		return nil, f.damage("the checksum of a frame's head is wrong")
	case n == endMark:
		return nil, f.end()
	case n > maxFrame:
		return nil, f.damage("a frame is larger than allowed")
	}
	if err := f.fill(head[8:]); err != nil {
		return nil, err
	}
	if cap(f.buf) < int(n) {
		f.buf = make([]byte, n)
	}
	payload := f.buf[:n]
	if err := f.fill(payload); err != nil {
		return nil, err
	}
	f.crc = castagnoli(crc, payload)
	if f.crc != binary.LittleEndian.Uint32(head[8:]) {
		return nil, f.damage("the checksum of a frame is wrong")
	}
	f.offset += headSize + int64(n)
	return payload, nil
}

// fill reads all of p; an early end of the stream is errUnfinished.
func (f *frameReader) fill(p []byte) error {
	_, err := io.ReadFull(f.r, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errUnfinished
	}
	return err
}

// end returns [io.EOF] when nothing follows the end mark.
func (f *frameReader) end() error {
	f.offset += 8
	_, err := f.r.ReadByte()
	if err == nil {
		return f.damage("data follows the end mark")
	}
	return err
}

func (f *frameReader) damage(reason string) error {
	return &damageError{offset: f.offset, reason: reason}
}
