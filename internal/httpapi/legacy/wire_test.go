package legacy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

var update = flag.Bool("update", false, "write the answers of this build into testdata/wire")

// TestWire plays the requests in testdata/wire, one file a server, and compares
// the answers byte for byte. A file holds comments (#), and exchanges of a request
// (>) and its answer (<): a line with method and target, header lines, and after
// an empty line a body; a line with status and content type, and the body.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no wire files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := newTestAPI(t, stopped{})
			s.url = "http://" + httpapitest.Start(t, s.http)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := s.play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("got\n%s\nwant\n%s", got, text)
			}
		})
	}
}

// play sends the requests of a wire file and returns the file with the answers
// that came.
func (s *testServer) play(t *testing.T, file string) string {
	t.Helper()
	var out, request strings.Builder
	for line := range strings.Lines(file) {
		switch {
		case strings.HasPrefix(line, "<"):
			if request.Len() > 0 {
				out.WriteString(s.exchange(t, request.String()))
				request.Reset()
			}
		case strings.HasPrefix(line, ">"):
			request.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
			out.WriteString(line)
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// local are the texts that depend on the machine's time zone or on the moment.
var local = regexp.MustCompile(`"(lastModifiedTime|lastRefTimeStr|timestamp)":"[^"]*"`)

// exchange sends one request and returns the lines of its answer.
func (s *testServer) exchange(t *testing.T, request string) string {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimSuffix(request, "\n"), "\n\n")
	first, rest, _ := strings.Cut(head, "\n")
	method, target, _ := strings.Cut(first, " ")
	var headers []string
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		headers = append(headers, name, value)
	}
	got := s.send(t, method, target, body, headers...)
	text := local.ReplaceAllString(got.body, `"$1":"…"`)
	end := ""
	if strings.HasSuffix(text, "\n") { // the line feed of an illegal argument
		text, end = strings.TrimSuffix(text, "\n"), "\n< "
	}
	return fmt.Sprintf("< %d %s\n< %s%s\n", got.status, got.contentType, text, end)
}
