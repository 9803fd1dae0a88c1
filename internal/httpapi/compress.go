package httpapi

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

// compressor is a gzip writer and the memory it writes to.
type compressor struct {
	buf bytes.Buffer
	w   *gzip.Writer
}

// compress replaces a large body by its gzip form if the client takes that and it
// is smaller.
func (x *Exchange) compress() {
	a := &x.answer
	least := x.conn.server.cfg.GzipMinBytes
	if least == 0 || a.size() < least || a.encoding != "" || !x.acceptsGzip() {
		return
	}
	x.SetHeader("Vary", "Accept-Encoding")
	s := x.conn.server
	work := 2 * int64(a.size()) // a buffer that grows may be twice as large as what is in it
	if !s.answers.reserve(work) {
		return
	}
	defer s.answers.free(work)
	z := s.compressors.Get().(*compressor)
	defer s.compressors.Put(z)
	parts := a.parts()
	if small := z.compress(parts[:]); small != nil && len(small) < a.size() {
		s.answers.replace(parts, small)
		a.body, a.more, a.encoding = small, [2][]byte{}, "gzip"
	}
}

// keepCompressed is how large a buffer a compressor keeps, in bytes.
const keepCompressed = 1 << 20

// compress returns the gzip form of parts together, in memory of the caller's; nil
// if that fails.
func (z *compressor) compress(parts [][]byte) []byte {
	z.buf.Reset()
	z.w.Reset(&z.buf)
	for _, p := range parts {
		if _, err := z.w.Write(p); err != nil {
			return nil
		}
	}
	if z.w.Close() != nil {
		return nil
	}
	if z.buf.Cap() <= keepCompressed {
		return bytes.Clone(z.buf.Bytes())
	}
	all := z.buf.Bytes()
	z.buf = bytes.Buffer{}
	return all
}

// acceptsGzip reports whether Accept-Encoding names gzip, and not with q=0.
func (x *Exchange) acceptsGzip() bool {
	for part := range bytes.SplitSeq(x.head.get("Accept-Encoding"), []byte{','}) {
		coding, params, _ := bytes.Cut(part, []byte{';'})
		if !bytes.EqualFold(bytes.TrimSpace(coding), []byte("gzip")) {
			continue
		}
		q := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimSpace(params), []byte("q=")), "0.")
		return len(params) == 0 || len(q) > 0
	}
	return false
}
