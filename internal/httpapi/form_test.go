package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

const inParts = "Content-Type: multipart/form-data; boundary=X"

// parts is a multipart body of the fields, each a name and a value.
func parts(t testing.TB, fields ...[2]string) string {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("X"); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// formServer echoes parameters below /v1/ns, as 1.x, and below /v2.
func formServer(t testing.TB, cfg httpapi.Config) (address string) {
	t.Helper()
	methods := []string{"POST", "PUT", "PATCH", "DELETE"}
	groups := append(httpapitest.Groups(), httpapi.Group{
		Prefix: "/v2", Multipart: true, NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported,
	})
	router, err := httpapi.NewRouter(cfg.ContextPath, httpapi.Hooks{}, groups, []httpapi.Route{
		{Methods: methods, Path: "/v1/ns/echo", Handler: echo, Resource: httpapi.Open, Action: httpapi.Read},
		{Methods: methods, Path: "/v2/echo", Handler: echo, Resource: httpapi.Open, Action: httpapi.Read},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(cfg, router, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return httpapitest.Start(t, server)
}

// A multipart body counts where 2.x and later count it, and is refused where part of
// what the request says would go unread.
func TestMultipart(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.MaxBodyBytes, cfg.MaxBodyMemory = 256<<10, 512<<10
	address := formServer(t, cfg)
	large := strings.Repeat("v", 100<<10)
	many := make([][2]string, 1025)
	for i := range many {
		many[i] = [2]string{fmt.Sprint("n", i), "v"}
	}
	file := "--X\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nx\r\n--X--\r\n"
	for _, tt := range []struct {
		name, target, contentType, body string
		status                          int
		want                            string // within the answer
	}{
		{"fields", "/v2/echo?a=1", inParts, parts(t, [2]string{"a", "2"}, [2]string{"b", "中 %41+"}), 200, "a=1\na=2\nb=中 %41+\n"},
		{"no fields", "/v2/echo?a=1", inParts, parts(t), 200, "a=1\n"},
		{"bytes that are no text", "/v2/echo", inParts, parts(t, [2]string{"a", "\xff"}), 200, "a=\ufffd\n"},
		{"another spelling", "/v2/echo", "Content-Type: Multipart/Form-Data;boundary=\"X\"", parts(t, [2]string{"a", "1"}), 200, "a=1\n"},
		{"a large field", "/v2/echo", inParts, parts(t, [2]string{"a", large}), 200, "a=" + large + "\n"},
		{"no boundary", "/v2/echo", "Content-Type: multipart/form-data", parts(t), 400, "names no boundary"},
		{"no multipart", "/v2/echo", inParts, "a=1", 400, "is malformed"},
		{"cut", "/v2/echo", inParts, parts(t, [2]string{"a", "1"})[:50], 400, "is malformed"},
		{"no name", "/v2/echo", inParts, "--X\r\nContent-Type: text/plain\r\n\r\nx\r\n--X--\r\n", 400, "has no name"},
		{"a file", "/v2/echo", inParts, file, 400, "has a file"},
		{"many fields", "/v2/echo", inParts, parts(t, many...), 400, "too many parts"},
		{"of 1.x, with a query", "/v1/ns/echo?a=1", inParts, parts(t, [2]string{"b", "1"}), 415, "x-www-form-urlencoded"},
		{"of 1.x, without", "/v1/ns/echo", inParts, parts(t, [2]string{"b", "1"}), 200, ""},
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			got := dial(t, address).ask(withBody(method, tt.target, tt.body, tt.contentType))
			if got.StatusCode != tt.status || !strings.Contains(got.body, tt.want) || tt.status == 200 && got.body != tt.want {
				t.Errorf("%s, %s: %d %.200q, want %d %.200q", tt.name, method, got.StatusCode, got.body, tt.status, tt.want)
			}
		}
	}
}

// The memory of a large multipart body counts twice: as it came, and its fields.
func TestMultipartMemory(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.MaxBodyBytes, cfg.MaxBodyMemory = 256<<10, 256<<10
	got := dial(t, formServer(t, cfg)).ask(withBody("POST", "/v2/echo", parts(t, [2]string{"a", strings.Repeat("v", 200<<10)}), inParts))
	if got.StatusCode != 503 {
		t.Errorf("%d %.200q, want 503", got.StatusCode, got.body)
	}
}

// A compressed body is not taken for text. What clients of 1.x say is a charset.
func TestCompressedBody(t *testing.T) {
	address := formServer(t, httpapi.DefaultConfig())
	for coding, status := range map[string]int{
		"gzip": 415, "GZIP": 415, "x-gzip": 415, "deflate": 415, "br": 415, "zstd": 415, "identity, gzip": 415,
		"UTF-8": 200, "utf-8": 200, "GBK": 200, "identity": 200, "": 200,
	} {
		got := dial(t, address).ask(withBody("POST", "/v1/ns/echo", "a=1", "Content-Encoding: "+coding))
		if got.StatusCode != status || status == 200 && got.body != "a=1\n" || status != 200 && !strings.Contains(got.body, "without Content-Encoding") {
			t.Errorf("%q: %d %q, want %d", coding, got.StatusCode, got.body, status)
		}
	}
	if got := dial(t, address).ask(request("POST", "/v1/ns/echo?a=1", "Content-Encoding: gzip")); got.StatusCode != 200 {
		t.Errorf("without a body: %d %q", got.StatusCode, got.body)
	}
}

// FuzzMultipart sends arbitrary bodies of parts: each is answered.
func FuzzMultipart(f *testing.F) {
	f.Add(parts(f, [2]string{"a", "1"}, [2]string{"b", "\xff"}))
	f.Add("--X\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--X--")
	f.Add("--X--")
	address := formServer(f, httpapi.DefaultConfig())
	f.Fuzz(func(t *testing.T, body string) {
		if got := dial(t, address).ask(withBody("POST", "/v2/echo", body, inParts)); got.StatusCode != 200 && got.StatusCode != 400 {
			t.Errorf("%d %q", got.StatusCode, got.body)
		}
	})
}
