package v2

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern/moderntest"
)

func TestNotReady(t *testing.T) {
	s := moderntest.New(t, newAPI).Start(t)
	s.Told.Ready = errors.New("still reading")
	got := s.Call(t, "GET", "/v2/console/health/readiness", "")
	if got.Status != 200 || got.Body != `{"code":30000,"message":"still reading","data":null}` {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	if got := s.Call(t, "GET", "/v2/console/health/liveness", ""); got.Status != 200 || !strings.Contains(got.Body, `"ok"`) {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

func TestSurroundings(t *testing.T) {
	s := moderntest.New(t, newAPI).Start(t)
	s.Connect(t)
	s.Call(t, "GET", "/v2/core/loader/reloadCurrent", "count=-1")
	s.Call(t, "GET", "/v2/core/loader/reloadCurrent", "count=2")
	s.Call(t, "GET", "/v2/core/loader/reloadClient", "connectionId=nobody")
	if !slices.Equal(s.Told.Sheds, []int{2}) {
		t.Errorf("shed %v", s.Told.Sheds)
	}
	if !slices.Equal(s.Told.Resets, []string{"nobody to "}) {
		t.Errorf("reset %q", s.Told.Resets)
	}
	httpapitest.Ask(t, s.HTTP, httpapitest.WireRequest{Method: "PUT", Target: "/v2/core/ops/log", Body: `{"logName":"core","logLevel":"ERROR"}`})
	if s.Told.Level != slog.LevelError {
		t.Errorf("level %v", s.Told.Level)
	}
}

func TestMultipart(t *testing.T) { moderntest.Multipart(t, newAPI, "/v2/ns/instance") }
