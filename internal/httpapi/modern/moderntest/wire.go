package moderntest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
)

// Wire plays the requests in testdata/wire, one file a server, and compares the
// answers byte for byte; update writes them instead. A file holds comments (#), and
// exchanges of a request (>) and its answer (<): a line with method and target,
// header lines, and after an empty line a body; a line with status and content type,
// and the body. Times in error pages are left out.
func Wire(t *testing.T, update bool, make func(modern.Parts) API, prepare func(*testing.T, *Server)) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no wire files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := New(t, make).Start(t)
			prepare(t, s)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := s.play(t, string(text))
			if update {
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

// play sends the requests of a wire file and returns the file with the answers that
// came.
func (s *Server) play(t *testing.T, file string) string {
	t.Helper()
	var out, request strings.Builder
	flush := func() {
		if request.Len() > 0 {
			out.WriteString(s.exchange(t, request.String()))
			request.Reset()
		}
	}
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, ">") || firstLine.MatchString(line) {
			flush()
		}
		switch {
		case strings.HasPrefix(line, "<"):
		case strings.HasPrefix(line, ">"):
			request.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
			out.WriteString(line)
		default:
			out.WriteString(line)
		}
	}
	flush()
	return out.String()
}

// firstLine is that of a request: its method and target.
var firstLine = regexp.MustCompile(`^> [A-Z]+ /`)

var timestamp = regexp.MustCompile(`"timestamp":"[^"]*"`)

// exchange sends one request and returns the lines of its answer.
func (s *Server) exchange(t *testing.T, request string) string {
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
	shown := timestamp.ReplaceAllString(strings.TrimSuffix(got.Body, "\r\n"), `"timestamp":""`)
	return fmt.Sprintf("< %d %s\n< %s\n", got.Status, got.ContentType, strings.ReplaceAll(shown, "\n", "\n< "))
}
