package moderntest

import (
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Multipart registers an instance by a multipart form at a path, as `curl -F` does.
func Multipart(t *testing.T, make func(modern.Parts) API, path string) {
	t.Helper()
	s := New(t, make)
	var body strings.Builder
	for _, field := range [][2]string{{"serviceName", "orders"}, {"ip", "10.0.0.9"}, {"port", "80"}, {"metadata", `{"zone":"a"}`}} {
		body.WriteString("--X\r\nContent-Disposition: form-data; name=\"" + field[0] + "\"\r\n\r\n" + field[1] + "\r\n")
	}
	body.WriteString("--X--\r\n")
	got := httpapitest.Ask(t, s.HTTP, httpapitest.WireRequest{
		Method: "POST", Target: path, Body: body.String(), Headers: []string{"Content-Type", "multipart/form-data; boundary=X"},
	})
	view := s.Store.View(registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "orders"})
	if got.Status != 200 || view == nil || len(view.Instances) != 1 || view.Instances[0].Metadata.JSON() != `{"zone":"a"}` {
		t.Errorf("got %d %s, and the service %+v", got.Status, got.Body, view)
	}
}
