package legacy

import (
	"flag"
	"regexp"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

var update = flag.Bool("update", false, "write the answers of this build into testdata/wire")

// local are the texts that depend on the machine's time zone or on the moment.
var local = regexp.MustCompile(`"(lastModifiedTime|lastRefTimeStr|timestamp)":"[^"]*"`)

func TestWire(t *testing.T) {
	httpapitest.Wire(t, *update, func(t *testing.T) func(httpapitest.WireRequest) httpapitest.WireAnswer {
		s := newTestAPI(t, httpapitest.Stopped{})
		s.url = "http://" + httpapitest.Start(t, s.http)
		return func(r httpapitest.WireRequest) httpapitest.WireAnswer {
			got := s.send(t, r.Method, r.Target, r.Body, r.Headers...)
			body := local.ReplaceAllString(got.body, `"$1":"…"`)
			return httpapitest.WireAnswer{Status: got.status, ContentType: got.contentType, Body: body}
		}
	})
}
