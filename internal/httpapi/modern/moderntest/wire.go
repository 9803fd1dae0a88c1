package moderntest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
)

var timestamp = regexp.MustCompile(`"timestamp":"[^"]*"`)

// Wire plays the requests in testdata/wire, see [httpapitest.Wire], against servers
// with a client of gRPC. The time in an error page, and the line end after a
// refusal of the check of names, are left out.
func Wire(t *testing.T, update bool, make func(modern.Parts) API) {
	t.Helper()
	httpapitest.Wire(t, update, func(t *testing.T) func(httpapitest.WireRequest) httpapitest.WireAnswer {
		s := New(t, make).Start(t)
		s.Connect(t)
		return func(r httpapitest.WireRequest) httpapitest.WireAnswer {
			got := s.send(t, r.Method, r.Target, r.Body, r.Headers...)
			body := timestamp.ReplaceAllString(strings.TrimSuffix(got.Body, "\r\n"), `"timestamp":""`)
			return httpapitest.WireAnswer{Status: got.Status, ContentType: got.ContentType, Body: body}
		}
	})
}
