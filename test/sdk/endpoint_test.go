package sdk

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestEndpointFailsForAWhile starts a client whose address server fails in all ways before
// it answers. The client waits for it, says why, and connects.
func TestEndpointFailsForAWhile(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	var stage atomic.Int32
	failures := []struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		{func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, "endpoint answered 500"},
		{func(http.ResponseWriter) {}, "it is empty"},
		{func(w http.ResponseWriter) { fmt.Fprintln(w, "<html>") }, "no host name or address"},
		{func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF"},
	}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := int(stage.Load()); n < len(failures) {
			failures[n].answer(w)
			return
		}
		fmt.Fprintln(w, server.Addr())
	}))
	defer endpoint.Close()
	c := dial(t, rollcall.WithEndpoint(endpoint.URL), rollcall.WithGRPCPortOffset(0))
	for n, failure := range failures {
		stage.Store(int32(n))
		await(t, c, failure.want, func(st rollcall.Status) bool {
			return errors.Is(st.LastError, rollcall.ErrNotConnected) && strings.Contains(st.LastError.Error(), failure.want)
		})
	}
	stage.Store(int32(len(failures)))
	if err := c.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	register(t, c, 8080)
	listed(t, server.Addr(), 1)
}
