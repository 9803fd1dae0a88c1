package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind says what a stream holds and how its body is encoded.
type Kind struct {
	Name    string // 1 to 64 bytes, such as "backup"
	Version uint16
}

// chunk is the usual size of one frame of a body, in bytes.
const chunk = 64 << 10

// WriteStream writes a checksummed stream to w: head in JSON, then what body
// writes, then an end mark. For a file, use it in [WriteFile].
func WriteStream(w io.Writer, kind Kind, head any, body func(io.Writer) error) error {
	frames, err := newFrameWriter(w, kind)
	if err != nil {
		return err
	}
	first, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if err := frames.frame(first); err != nil {
		return err
	}
	buf := bufio.NewWriterSize(frames, chunk)
	if err := body(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return frames.finish()
}

// ReadStream reads the head of a stream of [WriteStream] into head, a pointer,
// and returns a reader of the body. It refuses a stream of another name, and
// one of a version above kind's with [ErrNewer]. The reader hands out only what its checksum
// confirms, and returns [io.EOF] only after the end mark, so that who has read
// to the end holds all that was written. A stream that was cut or changed is an
// error that says so, fit to follow the name of the file. It buffers r and
// allocates up to 16 MiB.
func ReadStream(r io.Reader, kind Kind, head any) (body io.Reader, err error) {
	frames, err := newFrameReader(r, kind)
	if err != nil {
		return nil, err
	}
	first, err := frames.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it has no head")
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(first, head); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	return frames, nil
}
