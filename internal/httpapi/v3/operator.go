package v3

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// switches is the form of the switches in 3.x, which has other names for the
// versions that are pushed to. The older names, which the embedded form would show,
// are left out.
type switches struct {
	*registry.Switches

	OldGo     string `json:"pushGoVersion,omitempty"`
	OldJava   string `json:"pushJavaVersion,omitempty"`
	OldPython string `json:"pushPythonVersion,omitempty"`
	OldC      string `json:"pushCVersion,omitempty"`
	OldCSharp string `json:"pushCSharpVersion,omitempty"`

	Go     string `json:"pushVersionOfGo"`
	Java   string `json:"pushVersionOfJava"`
	Python string `json:"pushVersionOfPython"`
	C      string `json:"pushVersionOfC"`
	CSharp string `json:"pushVersionOfCsharp"`
}

// switches answers GET /admin/ns/ops/switches.
func (a *API) switches(x *httpapi.Exchange) {
	s := a.Core.Store().Switches()
	b, err := modern.EncodeJSON(result.Begin(x.Scratch[:0]), switches{
		Switches: s, Go: s.PushGoVersion, Java: s.PushJavaVersion, Python: s.PushPythonVersion, C: s.PushCVersion, CSharp: s.PushCSharpVersion,
	})
	if err != nil {
		a.Fail(x, err)
		return
	}
	a.Data(x, b)
}

// metrics answers GET /admin/ns/ops/metrics. How busy the machine is does not stand
// in it.
func (a *API) metrics(x *httpapi.Exchange) {
	a.Metrics(x, func(b []byte) []byte { return b })
}

// setLogLevel answers PUT /admin/ns/ops/log.
func (a *API) setLogLevel(x *httpapi.Exchange) {
	f := result.NewParams(x)
	name, level := f.Need("logName"), f.Need("logLevel")
	err := f.Err()
	if err == nil {
		a.SetLogLevel(name, level)
	}
	a.Done(x, err)
}
