package v1

import (
	"flag"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

var update = flag.Bool("update", false, "write the answers of this build into testdata/wire")

func TestWire(t *testing.T) {
	httpapitest.Wire(t, *update, func(t *testing.T) func(httpapitest.WireRequest) httpapitest.WireAnswer {
		s := newTestAPI(t, httpapitest.Stopped{}).start(t)
		return func(r httpapitest.WireRequest) httpapitest.WireAnswer {
			got := s.send(t, r.Method, r.Target, r.Body, r.Headers...)
			return httpapitest.WireAnswer{Status: got.status, ContentType: got.contentType, Body: got.body}
		}
	})
}
