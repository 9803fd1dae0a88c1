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

	// MaxFrame is the largest payload of one frame, in bytes. It bounds what a
	// reader allocates for a hostile stream.
	MaxFrame = 16 << 20
	maxName  = 64 // bytes; longer names are not ours
)

var (
	// ErrUnfinished is returned when a stream ends without its end mark.
	ErrUnfinished = errors.New("the stream ends before its end mark")
	// ErrFrameSize is returned by [Writer.Write] for a payload above [MaxFrame].
	ErrFrameSize = fmt.Errorf("a frame holds at most %d bytes", MaxFrame)
)

// DamageError tells that bytes of a framed stream are not what was written.
type DamageError struct {
	Offset int64  // where the damaged header or frame begins, in bytes
	Reason string // what is wrong with it
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged at byte %d: %s", e.Offset, e.Reason)
}

// Kind says what a framed stream holds and how it is encoded. A reader refuses
// another name, and a version above its own.
type Kind struct {
	Name    string // 1 to 64 bytes, such as "backup"
	Version uint16 // the encoding of the payloads
}

func castagnoli(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p) // the table is made once by the library
}

// Writer writes a framed stream. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	crc uint32 // the last checksum written
	buf []byte // frames on their way, reused
}

// NewWriter writes the header of a stream of the given kind to w. The writer
// issues one Write to w for each call; it does not buffer between calls.
func NewWriter(w io.Writer, kind Kind) (*Writer, error) {
	if kind.Name == "" || len(kind.Name) > maxName {
		return nil, fmt.Errorf("the name of a stream has 1 to %d bytes, not %d", maxName, len(kind.Name))
	}
	b := append([]byte(frameMagic), frameLayout, byte(len(kind.Name)))
	b = binary.LittleEndian.AppendUint16(b, kind.Version)
	b = append(b, kind.Name...)
	crc := castagnoli(0, b)
	b = binary.LittleEndian.AppendUint32(b, crc)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	return &Writer{w: w, crc: crc, buf: b}, nil
}

// WriteFrames writes each payload as one frame, all with one Write to the
// underlying writer. It does not keep the payloads. After an error nothing is
// known about what reached the underlying writer, and the stream must be given
// up.
func (w *Writer) WriteFrames(payloads ...[]byte) error {
	b, crc := w.buf[:0], w.crc
	for _, p := range payloads {
		if len(p) > MaxFrame {
			return ErrFrameSize
		}
		b, crc = appendFrame(b, crc, p)
	}
	if err := w.flush(b); err != nil {
		return err
	}
	w.crc = crc
	return nil
}

// Finish writes the end mark. It does not close the underlying writer.
func (w *Writer) Finish() error {
	b := binary.LittleEndian.AppendUint32(w.buf[:0], endMark)
	return w.flush(binary.LittleEndian.AppendUint32(b, castagnoli(w.crc, b)))
}

func (w *Writer) flush(b []byte) error {
	_, err := w.w.Write(b)
	if cap(b) <= 1<<20 { // one huge frame must not pin its memory
		w.buf = b
	}
	return err
}

// appendFrame appends the frame of payload to b, continuing the checksum crc,
// and returns both.
func appendFrame(b []byte, crc uint32, payload []byte) ([]byte, uint32) {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	crc = castagnoli(crc, b[start:])
	b = binary.LittleEndian.AppendUint32(b, crc)
	crc = castagnoli(crc, payload)
	b = binary.LittleEndian.AppendUint32(b, crc)
	return append(b, payload...), crc
}

// Reader reads a framed stream. It is not safe for concurrent use.
type Reader struct {
	r       *bufio.Reader
	version uint16
	offset  int64  // where the next frame begins
	crc     uint32 // the checksum there
	buf     []byte // the payload, reused
	err     error  // sticky
}

// NewReader reads the header of a stream from r, which it buffers. It refuses
// a stream of another name and one whose version is above kind's.
func NewReader(r io.Reader, kind Kind) (*Reader, error) {
	f := &Reader{r: bufio.NewReaderSize(r, 64<<10)}
	const fixed = len(frameMagic) + 4
	b := make([]byte, fixed, fixed+maxName+4)
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, headerError(err)
	}
	if string(b[:len(frameMagic)]) != frameMagic || b[4] != frameLayout || b[5] == 0 || b[5] > maxName {
		return nil, &DamageError{Reason: "it does not begin like a file of Rollcall"}
	}
	b = b[:fixed+int(b[5])+4]
	if _, err := io.ReadFull(f.r, b[fixed:]); err != nil {
		return nil, headerError(err)
	}
	body := b[:len(b)-4]
	f.crc = castagnoli(0, body)
	if f.crc != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, &DamageError{Reason: "the checksum of the header is wrong"}
	}
	f.version = binary.LittleEndian.Uint16(b[6:])
	f.offset = int64(len(b))
	switch name := string(body[fixed:]); {
	case name != kind.Name:
		return nil, fmt.Errorf("it holds %q, not %q", name, kind.Name)
	case f.version > kind.Version:
		return nil, fmt.Errorf("%q has version %d and this version of Rollcall understands up to %d", name, f.version, kind.Version)
	}
	return f, nil
}

// headerError names the error of reading a header.
func headerError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("its header is cut off: %w", ErrUnfinished)
	}
	return err
}

// Version returns the version that the stream's header names.
func (r *Reader) Version() uint16 { return r.version }

// Next returns the payload of the next frame, valid until the next call. It
// returns [io.EOF] after the end mark, [ErrUnfinished] when the stream stops
// before it, a [*DamageError] when its bytes were changed, and the error of the
// underlying reader. Every error is final.
func (r *Reader) Next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	payload, err := r.next()
	r.err = err
	return payload, err
}

func (r *Reader) next() ([]byte, error) {
	head := make([]byte, headSize)
	if err := r.fill(head[:8]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	crc := castagnoli(r.crc, head[:4])
	if crc != binary.LittleEndian.Uint32(head[4:]) {
		return nil, r.damage("the checksum of a frame's head is wrong")
	}
	if n == endMark {
		return nil, r.finish()
	}
	if n > MaxFrame {
		return nil, r.damage("a frame is larger than allowed")
	}
	if err := r.fill(head[8:]); err != nil {
		return nil, err
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n)
	}
	payload := r.buf[:n]
	if err := r.fill(payload); err != nil {
		return nil, err
	}
	crc = castagnoli(crc, payload)
	if crc != binary.LittleEndian.Uint32(head[8:]) {
		return nil, r.damage("the checksum of a frame is wrong")
	}
	r.crc = crc
	r.offset += headSize + int64(n)
	return payload, nil
}

// fill reads all of p; an early end of the stream is [ErrUnfinished].
func (r *Reader) fill(p []byte) error {
	_, err := io.ReadFull(r.r, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrUnfinished
	}
	return err
}

// finish returns io.EOF when nothing follows the end mark.
func (r *Reader) finish() error {
	r.offset += 8
	_, err := r.r.ReadByte()
	if err == nil {
		return r.damage("data follows the end mark")
	}
	return err
}

func (r *Reader) damage(reason string) error {
	return &DamageError{Offset: r.offset, Reason: reason}
}
