package ops

import (
	"errors"
	"io"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// backup answers GET /rollcall/v1/backup: a copy of the durable state that ends
// with a mark, so that a part of it is not taken for the whole.
func (a *API) backup(x *httpapi.Exchange) {
	err := x.Stream("application/octet-stream", func(w io.Writer) error {
		_, err := a.cfg.Durable.Backup(w)
		return err
	})
	if err != nil {
		a.fail(x, "backup", err)
	}
}

// export answers GET /rollcall/v1/export: the durable state, one JSON object a
// line. If it fails on the way, the connection ends without the end of the body.
func (a *API) export(x *httpapi.Exchange) {
	if err := x.Stream("application/x-ndjson", a.cfg.Durable.Export); err != nil {
		a.fail(x, "export", err)
	}
}

// restore answers POST /rollcall/v1/restore, whose body is what backup gave.
func (a *API) restore(x *httpapi.Exchange) {
	select {
	case a.restoring <- struct{}{}:
		defer func() { <-a.restoring }()
	default:
		refuse(x, 409, "nothing was restored: another restore is running")
		return
	}
	body := counted{r: x.BodyReader()}
	info, sound, err := a.cfg.Durable.Restore(&body)
	if err == nil {
		a.log.Warn("durable state restored from a backup",
			"made", info.Time, "member", info.ID, "bytes", body.n, "client", x.Client().String())
		a.answer(x, info)
		return
	}
	status, text, cut := httpapi.BodyFault(err)
	switch {
	case body.n == 0 && errors.Is(body.err, io.EOF):
		refuse(x, 400, "nothing was restored: the body is empty; send what GET /rollcall/v1/backup gave")
	case cut:
		refuse(x, status, "nothing was restored: "+text)
	case !sound:
		refuse(x, 400, "nothing was restored: "+err.Error())
	default:
		a.fail(x, "restore", err)
	}
}

// counted counts the bytes of a body and keeps how it ended.
type counted struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.err = err
	return n, err
}
