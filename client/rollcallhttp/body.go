package rollcallhttp

import (
	"io"
	"sync"
)

// watchBody calls done once, when the body of an answer has been read or closed: until
// then the request is in flight. The body of a connection that changed its protocol can
// be written to as well.
func watchBody(body io.ReadCloser, done func()) io.ReadCloser {
	b := &watchedBody{body, sync.OnceFunc(done)}
	if w, ok := body.(io.Writer); ok {
		return &watchedStream{b, w}
	}
	return b
}

type watchedBody struct {
	body io.ReadCloser
	done func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.done()
	return b.body.Close()
}

type watchedStream struct {
	*watchedBody
	io.Writer
}
