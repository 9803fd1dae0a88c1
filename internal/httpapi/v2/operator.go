package v2

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// switches answers GET /operator/switches, in the form that they have in 1.x too.
func (a *API) switches(x *httpapi.Exchange) {
	b, err := modern.EncodeJSON(result.Begin(x.Scratch[:0]), a.Core.Store().Switches())
	if err != nil {
		a.Fail(x, err)
		return
	}
	a.Data(x, b)
}

// metrics answers GET /operator/metrics.
func (a *API) metrics(x *httpapi.Exchange) {
	a.Metrics(x, func(b []byte) []byte {
		cpu, average, memory := a.Load()
		b = modern.AppendFloat(append(b, `,"cpu":`...), float32(cpu))
		b = modern.AppendFloat(append(b, `,"load":`...), float32(average))
		return modern.AppendFloat(append(b, `,"mem":`...), float32(memory))
	})
}
