package ops

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// answer writes v as JSON.
func (a *API) answer(x *httpapi.Exchange, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		a.fail(x, "write the answer", err)
		return
	}
	x.JSON(200, body)
}

// refuse answers with a sentence.
func refuse(x *httpapi.Exchange, status int, text string) {
	body, err := json.Marshal(opsv1.Error{Error: text})
	if err != nil {
		panic("ops: a plain string must encode: " + err.Error())
	}
	x.JSON(status, body)
}

// fail answers an internal error, whose text stays in the log.
func (a *API) fail(x *httpapi.Exchange, action string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		refuse(x, 503, action+": the server is stopping, or it took too long; try again")
		return
	}
	a.log.Error("request failed", "action", action, "err", err)
	refuse(x, 500, action+": failed; the server's log says why")
}
