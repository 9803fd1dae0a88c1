package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// chunk is the usual size of one frame of a body, in bytes.
const chunk = 64 << 10

// WriteStream writes a framed stream to w: head in JSON as the first frame,
// then what body writes, then the end mark. For a file, use it in [WriteFile].
func WriteStream(w io.Writer, kind Kind, head any, body func(io.Writer) error) error {
	frames, err := NewWriter(w, kind)
	if err != nil {
		return err
	}
	first, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if err := frames.WriteFrames(first); err != nil {
		return err
	}
	buf := bufio.NewWriterSize(bodyWriter{frames}, chunk)
	if err := body(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return frames.Finish()
}

// ReadStream reads the head of a stream of [WriteStream] into head, a pointer,
// and returns a reader of the body. That reader returns [io.EOF] only after
// the end mark, so who has read to the end holds what was written, all of it;
// otherwise it returns the errors of [Reader.Next].
func ReadStream(r io.Reader, kind Kind, head any) (body io.Reader, err error) {
	frames, err := NewReader(r, kind)
	if err != nil {
		return nil, err
	}
	first, err := frames.Next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it has no head")
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(first, head); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	return &bodyReader{frames: frames}, nil
}

// bodyWriter makes frames of what is written.
type bodyWriter struct{ frames *Writer }

func (w bodyWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), MaxFrame)
		if err := w.frames.WriteFrames(rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// bodyReader reads the payloads of frames one after another.
type bodyReader struct {
	frames *Reader
	rest   []byte
}

func (r *bodyReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		next, err := r.frames.Next()
		if err != nil {
			return 0, err
		}
		r.rest = next
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
