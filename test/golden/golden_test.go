package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestComparison has each rule twice: what counts as equal, and the smallest
// difference that must be seen.
func TestComparison(t *testing.T) {
	for _, tt := range []struct {
		name      string
		step      string // volatile and unordered
		want, got string // answers
		differs   string // a part of the difference; empty: none
	}{
		{"equal text", ``, `{"status":200,"type":"text/plain","body":"ok"}`, `{"status":200,"type":"text/plain","body":"ok"}`, ""},
		{"status", ``, `{"status":200,"body":"ok"}`, `{"status":400,"body":"ok"}`, "status 400, want 200"},
		{"type", ``, `{"status":200,"type":"text/html","body":""}`, `{"status":200,"type":"text/plain","body":""}`, `content type "text/plain", want "text/html"`},
		{"text", ``, `{"body":"ok"}`, `{"body":"ok "}`, `body "ok ", want "ok"`},
		{"text, not JSON", ``, `{"body":"ok"}`, `{"json":{}}`, `body {}, want "ok"`},
		{"JSON, not text", ``, `{"json":{}}`, `{"body":"ok"}`, `body "ok", want JSON {}`},
		{"null JSON is JSON", ``, `{"json":null}`, `{"body":"null"}`, "want JSON null"},

		{"key order", ``, `{"json":{"a":1,"b":2}}`, `{"json":{"b":2,"a":1}}`, ""},
		{"missing key", ``, `{"json":{"a":1,"b":2}}`, `{"json":{"a":1}}`, `: missing key "b"`},
		{"extra key", ``, `{"json":{"a":1}}`, `{"json":{"a":1,"b":null}}`, `: extra key "b"`},
		{"deep value", ``, `{"json":{"a":[{"b":1}]}}`, `{"json":{"a":[{"b":2}]}}`, ".a[0].b: got 2, want 1"},
		{"null is no missing key", ``, `{"json":{"a":null}}`, `{"json":{}}`, "missing key"},

		{"1.0 is 1", ``, `{"json":[1.0,1e3,-0.0]}`, `{"json":[1,1000,0]}`, ""},
		{"fractions", ``, `{"json":0.1}`, `{"json":0.10000001}`, "got 0.10000001, want 0.1"},
		{"whole numbers beyond floats", ``, `{"json":9007199254740993}`, `{"json":9007199254740992}`, "got 9007199254740992"},
		{"numbers beyond whole numbers", ``, `{"json":1e300}`, `{"json":1.0e300}`, ""},
		{"a string is no number", ``, `{"json":1}`, `{"json":"1"}`, `got "1", want 1`},
		{"true is no number", ``, `{"json":1}`, `{"json":true}`, "got true, want 1"},
		{"false is not null", ``, `{"json":false}`, `{"json":null}`, "got null, want false"},
		{"strings", ``, `{"json":"A"}`, `{"json":"a"}`, `got "a", want "A"`},
		{"booleans", ``, `{"json":true}`, `{"json":false}`, "got false, want true"},

		{"array order", ``, `{"json":[1,2]}`, `{"json":[2,1]}`, "[0]: got 2, want 1"},
		{"array length", ``, `{"json":[1,2]}`, `{"json":[1,2,3]}`, "3 items, want 2"},
		{"hosts have no order", ``, `{"json":{"hosts":[{"ip":"b"},{"ip":"a"}]}}`, `{"json":{"hosts":[{"ip":"a"},{"ip":"b"}]}}`, ""},
		{"hosts still differ", ``, `{"json":{"hosts":[{"ip":"b"},{"ip":"a"}]}}`, `{"json":{"hosts":[{"ip":"a"},{"ip":"c"}]}}`, `.hosts[1].ip: got "c", want "b"`},
		{"named unordered", `"unordered":["doms"]`, `{"json":{"doms":["b","a"]}}`, `{"json":{"doms":["a","b"]}}`, ""},
		{"other keys keep their order", `"unordered":["doms"]`, `{"json":{"list":["b","a"]}}`, `{"json":{"list":["a","b"]}}`, ".list[0]"},
		{"unordered top level", `"unordered":[""]`, `{"json":["b","a"]}`, `{"json":["a","b"]}`, ""},
		{"repeated items count", `"unordered":[""]`, `{"json":["a","a","b"]}`, `{"json":["a","b","b"]}`, "[1]"},
		{"order ignores what is volatile", `"volatile":["t"],"unordered":["l"]`, `{"json":{"l":[{"n":"a","t":2},{"n":"b","t":1}]}}`, `{"json":{"l":[{"n":"b","t":3},{"n":"a","t":9}]}}`, ""},
		{"order ignores how numbers are written", `"unordered":["l"]`, `{"json":{"l":[{"w":1.0,"n":"x"},{"w":1,"n":"y"}]}}`, `{"json":{"l":[{"w":1,"n":"y"},{"w":1,"n":"x"}]}}`, ""},

		{"volatile value", `"volatile":["t"]`, `{"json":{"x":{"t":1}}}`, `{"json":{"x":{"t":99}}}`, ""},
		{"volatile kind", `"volatile":["t"]`, `{"json":{"t":1}}`, `{"json":{"t":"1"}}`, ".t: a string, not a number"},
		{"volatile key is missing", `"volatile":["t"]`, `{"json":{"t":1}}`, `{"json":{}}`, `missing key "t"`},
		{"volatile array", `"volatile":["t"]`, `{"json":{"t":[1]}}`, `{"json":{"t":[]}}`, ""},
		{"volatile is not null", `"volatile":["t"]`, `{"json":{"t":[1]}}`, `{"json":{"t":null}}`, ".t: a null, not a array"},

		{"star: values", `"volatile":["*"]`, `{"json":{"a":1,"l":[{"b":"x"}]}}`, `{"json":{"a":2,"l":[{"b":"y"},{"b":"z"}]}}`, ""},
		{"star: keys", `"volatile":["*"]`, `{"json":{"a":1}}`, `{"json":{"b":1}}`, "missing key"},
		{"star: kinds", `"volatile":["*"]`, `{"json":{"a":1}}`, `{"json":{"a":"1"}}`, ".a: got"},
		{"star: first items", `"volatile":["*"]`, `{"json":[{"a":1}]}`, `{"json":[{"b":1}]}`, "[0]: missing key"},
		{"star: empty array", `"volatile":["*"]`, `{"json":[{"a":1}]}`, `{"json":[]}`, ""},
		{"star: text", `"volatile":["*"]`, `{"body":"a"}`, `{"body":"b"}`, ""},
		{"star: type", `"volatile":["*"]`, `{"type":"a/b","body":"a"}`, `{"type":"a/c","body":"b"}`, "content type"},
		{"star: JSON for text", `"volatile":["*"]`, `{"body":"a"}`, `{"json":[]}`, "body []"},

		{"body: anything", `"volatile":["body"]`, `{"status":400,"type":"text/html","body":"x"}`, `{"status":400,"type":"application/json","json":{}}`, ""},
		{"body: status", `"volatile":["body"]`, `{"status":400,"body":"x"}`, `{"status":404,"body":"x"}`, "status 404, want 400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Step
			decode(t, "{"+tt.step+"}", &s)
			s.Expect = new(Answer)
			decode(t, tt.want, s.Expect)
			var got Answer
			decode(t, tt.got, &got)
			found := s.differences(got)
			if all := strings.Join(found, "\n"); tt.differs == "" && all != "" || !strings.Contains(all, tt.differs) {
				t.Errorf("got differences %q, want %q", found, tt.differs)
			}
		})
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// echo answers with what it was asked, one line per part.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "Text/Plain ; charset=UTF-8")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "%s %s\n%s|%s|%s|%s\n%s", r.Method, r.RequestURI,
		r.Header.Get("Content-Type"), r.Header.Get("Content-Length"), r.Header.Get("Accept-Encoding"), r.Header.Get("User-Agent"), body)
}

func TestCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	for _, tt := range []struct{ name, step, want string }{
		{
			"query in order, repeated and encoded", `{"method":"GET","path":"/a/{svc}","query":{"z":"1 2","{grp}":["@@","{svc}"],"n":5}}`,
			"GET /a/{svc}?z=1+2&{grp}=%40%40&{grp}={svc}&n=5\n||identity|\n",
		},
		{"form", `{"method":"POST","path":"/","form":{"a":"ü&","b":"{ns}"},"body":"ignored"}`, "POST /\napplication/x-www-form-urlencoded|18|identity|\na=%C3%BC%26&b={ns}"},
		{"body", `{"method":"PUT","path":"/","body":"{\"ip\":\"{ip}\"}","headers":{"Content-Type":"application/json"}}`, "PUT /\napplication/json|13|identity|\n{\"ip\":\"{ip}\"}"},
		{"no body", `{"method":"POST","path":"/","form":null}`, "POST /\n|0|identity|\n"},
		{"own headers win", `{"method":"POST","path":"/","form":{},"headers":{"content-type":"text/x","accept-encoding":"gzip","User-Agent":"{svc2}"}}`, "POST /\ntext/x|0|gzip|{svc2}\n"},
		{"a path as it is", `{"method":"DELETE","path":"/a//b/%2e%7B?x={{1}}&y"}`, "DELETE /a//b/%2e%7B?x={{1}}&y\n||identity|\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Step
			decode(t, tt.step, &s)
			got := s.call(t.Context(), server.Listener.Addr().String(), sameLength())
			if got.Status != http.StatusAccepted || got.Type != "text/plain" || got.Body != tt.want {
				t.Errorf("got %d %q\n%s\nwant\n%s", got.Status, got.Type, got.Body, tt.want)
			}
		})
	}
}

// sameLength gives names as long as their placeholders, so that lengths in
// tests do not depend on them.
func sameLength() names {
	return names{
		strings.NewReplacer("{svc}", "svc-a", "{svc2}", "svc2-a", "{grp}", "grp-a", "{ns}", "ns-a", "{ip}", "1::2"),
		strings.NewReplacer("svc-a", "{svc}", "svc2-a", "{svc2}", "grp-a", "{grp}", "ns-a", "{ns}", "1::2", "{ip}"),
	}
}

func TestCallDecodesAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		isJSON     bool
		want       string
	}{
		{"object", " {\"a\":1}\n", true, `{"a":1}`},
		{"array", "[1]", true, "[1]"},
		{"a number is text", "1", false, "1"},
		{"broken JSON is text", "{a}", false, "{a}"},
		{"two documents are text", "{}{}", false, "{}{}"},
		{"a stray bracket is text", "{}}", false, "{}}"},
		{"not UTF-8", "a\xffb", false, "a\uFFFDb"},
		{"empty", "", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			s := Step{Method: "GET", Path: "/"}
			got := s.call(t.Context(), server.Listener.Addr().String(), freshNames())
			shown := got.Body
			if got.JSON.present {
				shown = text(got.JSON.value)
			}
			if got.JSON.present != tt.isJSON || shown != tt.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestCallWithoutAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	s := Step{Method: "GET", Path: "/", Expect: &Answer{Status: 200}}
	got := s.call(t.Context(), server.Listener.Addr().String(), freshNames())
	if found := s.differences(got); got.Status != 0 || len(found) == 0 {
		t.Errorf("got %+v, differences %q", got, found)
	}
}

// A registry of one list, to replay whole cases against.
func listServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	var hosts []string
	mux.HandleFunc("POST /instance", func(w http.ResponseWriter, r *http.Request) {
		hosts = append(hosts, r.FormValue("ip"))
		_, _ = io.WriteString(w, "ok")
	})
	mux.HandleFunc("GET /list", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": r.FormValue("serviceName"), "hosts": hosts, "lastRefTime": time.Now().UnixMilli()})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

const listCase = `{"id":"list","about":"x","steps":[
 {"method":"POST","path":"/instance","form":{"ip":"{ip}"},"expect":{"status":200,"type":"text/plain","body":"ok"}},
 {"method":"POST","path":"/instance","query":{"ip":"1.1.1.1"}},
 {"method":"GET","path":"/list","query":{"serviceName":"{svc}"},"wait":0.5,"volatile":["lastRefTime"],
  "expect":{"status":200,"type":"application/json","json":{"name":"{svc}","hosts":["1.1.1.1","{ip}"],"lastRefTime":5}}}]}`

func TestReplay(t *testing.T) {
	root := fstest.MapFS{
		"a/list.json": {Data: []byte(listCase)},
		"slow.json":   {Data: []byte(`{"id":"slow","steps":[{"method":"GET","path":"/none","wait":600,"expect":{"status":200}}]}`)},
		"other.json":  {Data: []byte(`{"id":"other","steps":[{"method":"GET","path":"/none","expect":{"status":200}}]}`)},
		"SOURCE.md":   {Data: []byte("no case")},
	}
	Replay(t, listServer(t), root, Options{Except: Exceptions("# comment\n\nother   differs here\n"), SkipSlow: true})
}

func TestPlayReportsTheStep(t *testing.T) {
	var c Case
	decode(t, strings.Replace(listCase, `"hosts":["1.1.1.1","{ip}"]`, `"hosts":["1.1.1.1","{ns}"]`, 1), &c)
	found := c.play(t.Context(), strings.TrimPrefix(listServer(t), "http://"), false)
	want := `step 3 GET "/list": .hosts[1]: got "{ip}", want "{ns}"`
	if len(found) != 1 || found[0] != want {
		t.Errorf("got %q, want %q", found, want)
	}
}

// TestRecordings checks that the recordings can be read, have ids that fit
// their files, and that each exception is still needed for one of them or for
// another protocol's.
func TestRecordings(t *testing.T) {
	for dir, atLeast := range map[string]int{"v1-1.4.8": 190, "v1-1.4.8-serial": 14, "legacy-0.9.0": 20, "v2-2.5.1": 127, "v3-3.0.3": 74, "v3-console-3.0.3": 9} {
		cases, err := Cases(os.DirFS("testdata/" + dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) < atLeast {
			t.Errorf("%s: %d cases, want at least %d", dir, len(cases), atLeast)
		}
		for _, c := range cases {
			if c.ID == "" || len(c.Steps) == 0 {
				t.Errorf("%s: a case without id or steps: %+v", dir, c)
			}
			for _, s := range c.Steps {
				if s.Expect == nil || s.Expect.Status == 0 {
					t.Errorf("%s %s: a step without its answer", dir, c.ID)
				}
			}
		}
	}
}
