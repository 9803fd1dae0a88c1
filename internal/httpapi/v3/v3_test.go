package v3

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern/moderntest"
)

// TestSignatures: each belongs to a route, and the package of each class in it is
// known.
func TestSignatures(t *testing.T) {
	var calls []string
	for _, r := range New(modern.Parts{Log: slog.New(slog.DiscardHandler)}).Routes() {
		calls = append(calls, r.Methods[0]+" "+r.Path)
	}
	for call, signature := range signatures {
		if !slices.Contains(calls, call) {
			t.Errorf("there is no call %s", call)
		}
		for word := range strings.FieldsFuncSeq(signature, func(c rune) bool { return strings.ContainsRune("<>(),. ", c) }) {
			if c := word[0]; c >= 'A' && c <= 'Z' && packages[word] == "" {
				t.Errorf("%s: the package of %s is not known", call, word)
			}
		}
	}
}

func TestFullNames(t *testing.T) {
	const signature = "Result<Page<SubscriberInfo>> ServiceControllerV3.subscribers(ServiceForm,PageForm,AggregationForm) throws Exception"
	const want = "public com.alibaba.nacos.api.model.v2.Result<com.alibaba.nacos.api.model.Page<com.alibaba.nacos.api.naming.pojo.maintainer.SubscriberInfo>> " +
		"com.alibaba.nacos.naming.controllers.v3.ServiceControllerV3.subscribers(com.alibaba.nacos.naming.model.form.ServiceForm," +
		"com.alibaba.nacos.core.model.form.PageForm,com.alibaba.nacos.core.model.form.AggregationForm) throws java.lang.Exception"
	if got := fullNames(signature); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for form, want := range map[string]int{"serviceForm": 0, "pageForm": 1, "aggregationForm": 2, "other": 0} {
		if got := argumentOf(signature, form); got != want {
			t.Errorf("%s: got %d", form, got)
		}
	}
	if got := argumentOf("", "serviceForm"); got != 0 {
		t.Errorf("got %d", got)
	}
}

func TestNotReady(t *testing.T) {
	s := moderntest.New(t, newAPI).Start(t)
	s.Told.Ready = errors.New("still reading")
	for path, status := range map[string]int{
		"/v3/admin/core/state/readiness": 200, "/v3/console/health/readiness": 500,
	} {
		got := s.Call(t, "GET", path, "")
		if got.Status != status || got.Body != `{"code":30000,"message":"still reading","data":null}` {
			t.Errorf("%s: got %d %s", path, got.Status, got.Body)
		}
	}
	for _, path := range []string{"/v3/admin/core/state/liveness", "/v3/console/health/liveness"} {
		if got := s.Call(t, "GET", path, ""); got.Status != 200 || !strings.Contains(got.Body, `"ok"`) {
			t.Errorf("%s: got %d %s", path, got.Status, got.Body)
		}
	}
}

func TestSurroundings(t *testing.T) {
	s := moderntest.New(t, newAPI).Start(t)
	s.Connect(t)
	const loader = "/v3/admin/core/loader"
	s.Call(t, "POST", loader+"/reloadCurrent", "count=0")
	s.Call(t, "POST", loader+"/reloadCurrent", "count=3")
	s.Call(t, "POST", loader+"/reloadClient", "connectionId=1700000000000_10.0.0.5_51234&redirectAddress=10.0.0.6:8848")
	s.Call(t, "PUT", "/v3/admin/ns/ops/log", "logName=naming&logLevel=WARN")
	if !slices.Equal(s.Told.Sheds, []int{3}) {
		t.Errorf("shed %v", s.Told.Sheds)
	}
	if !slices.Equal(s.Told.Resets, []string{"1700000000000_10.0.0.5_51234 to 10.0.0.6:8848"}) {
		t.Errorf("reset %q", s.Told.Resets)
	}
	if s.Told.Level != slog.LevelWarn {
		t.Errorf("level %v", s.Told.Level)
	}
	s.Call(t, "PUT", "/v3/admin/ns/ops/log", "logName=naming&logLevel=nonsense")
	if s.Told.Level != slog.LevelWarn {
		t.Errorf("level %v", s.Told.Level)
	}
}

func TestPages(t *testing.T) {
	for _, tt := range []struct {
		p     page
		total int
		want  string
	}{
		{page{1, 10}, 0, `{"totalCount":0,"pageNumber":1,"pagesAvailable":0,"pageItems":`},
		{page{2, 10}, 19, `{"totalCount":19,"pageNumber":2,"pagesAvailable":2,"pageItems":`},
		{page{1, 10}, 20, `{"totalCount":20,"pageNumber":1,"pagesAvailable":3,"pageItems":`},
		{page{1, 0}, 2, `{"totalCount":2,"pageNumber":1,"pagesAvailable":3,"pageItems":`},
	} {
		if got := string(tt.p.begin(nil, tt.total)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestMultipart(t *testing.T) { moderntest.Multipart(t, newAPI, "/v3/client/ns/instance") }
