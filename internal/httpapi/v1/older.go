package v1

import "github.com/rollcall-registry/rollcall/internal/httpapi"

// Below are calls that 1.4.8 also serves at the paths of 0.9. The 0.9 API passes
// requests for them on to these handlers.

// List answers a look-up, whose service may be in the parameter dom.
func (a *API) List(x *httpapi.Exchange) { a.list(x) }

// Beat answers a beat, whose service may be in the parameter dom.
func (a *API) Beat(x *httpapi.Exchange) { a.beat(x) }

// Hello answers with a sign of life.
func (a *API) Hello(x *httpapi.Exchange) { a.hello(x) }

// PushState answers how many UDP packets were sent and acknowledged.
func (a *API) PushState(x *httpapi.Exchange) { a.pushState(x) }
