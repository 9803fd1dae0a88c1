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
	if least == 0 || len(a.body) < least || a.encoding != "" || !x.acceptsGzip() {
		return
	}
	x.SetHeader("Vary", "Accept-Encoding")
	z := x.conn.server.compressors.Get().(*compressor)
	defer x.conn.server.compressors.Put(z)
	z.buf.Reset()
	z.w.Reset(&z.buf)
	if _, err := z.w.Write(a.body); err != nil {
		return
	}
	if z.w.Close() != nil || z.buf.Len() >= len(a.body) {
		return
	}
	a.body, a.encoding = bytes.Clone(z.buf.Bytes()), "gzip"
}

// acceptsGzip reports whether Accept-Encoding names gzip, and not with q=0.
func (x *Exchange) acceptsGzip() bool {
	for part := range bytes.SplitSeq(x.head.Peek("Accept-Encoding"), []byte{','}) {
		coding, params, _ := bytes.Cut(part, []byte{';'})
		if !bytes.EqualFold(bytes.TrimSpace(coding), []byte("gzip")) {
			continue
		}
		q := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimSpace(params), []byte("q=")), "0.")
		return len(params) == 0 || len(q) > 0
	}
	return false
}
