package naming

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// snapshotPart is how much of a snapshot one goroutine decodes, in bytes: a few
// thousand entries.
const snapshotPart = 512 << 10

// ReadSnapshot reads a snapshot of a store on all processors: decoding is most of
// the time that a large registry takes to start. It holds the whole of it in
// memory. It changes nothing; see [registry.ReadSnapshot].
func ReadSnapshot(r io.Reader) (*registry.Snapshot, error) {
	var decoding errgroup.Group
	decoding.SetLimit(runtime.GOMAXPROCS(0))
	var parts []*registry.Snapshot
	err := eachPart(r, func(n int, part []byte) {
		parts = append(parts, &registry.Snapshot{})
		into := parts[n]
		decoding.Go(func() error {
			snap, err := registry.ReadSnapshot(bytes.NewReader(part))
			if err != nil {
				return fmt.Errorf("part %d: %w", n+1, err)
			}
			into.Append(snap)
			return nil
		})
	})
	if err = errors.Join(err, decoding.Wait()); err != nil {
		return nil, err
	}
	whole := &registry.Snapshot{}
	for _, part := range parts {
		whole.Append(part)
	}
	return whole, nil
}

// eachPart cuts a text into parts that end with a line. A part is its receiver's.
func eachPart(r io.Reader, f func(n int, part []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 0; ; n++ {
		part := make([]byte, snapshotPart)
		size, err := io.ReadFull(in, part)
		part = part[:size]
		if err == nil {
			var line []byte
			if line, err = in.ReadBytes('\n'); err == nil || errors.Is(err, io.EOF) {
				part = append(part, line...)
			}
		}
		if len(part) > 0 {
			f(n, part)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		default:
			return err
		}
	}
}
