package httpapitest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// WireRequest is one request of a wire file.
type WireRequest struct {
	Method, Target, Body string
	Headers              []string // name, value, name, value
}

// WireAnswer is what came back.
type WireAnswer struct {
	Status            int
	ContentType, Body string
}

// Wire plays the requests of the files testdata/wire/*.txt, each against a server
// of its own that start makes, and compares the answers byte for byte; with update
// it writes them into the files. A file holds comments (#), and exchanges of a
// request (>) and its answer (<): a line with method and target, header lines, and
// after an empty line a body; a line with status and content type, and the body.
func Wire(t *testing.T, update bool, start func(*testing.T) func(WireRequest) WireAnswer) {
	t.Helper()
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no wire files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playWire(string(want), start(t))
			switch {
			case got == string(want):
			case !update:
				t.Errorf("got\n%s\nwant\n%s", got, want)
			default:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// firstWireLine is that of a request: its method and target.
var firstWireLine = regexp.MustCompile(`^> [A-Z]+ /`)

// playWire returns the text of a file with the answers that came, also to requests
// that have none there yet.
func playWire(file string, send func(WireRequest) WireAnswer) string {
	var out, request strings.Builder
	flush := func() {
		if request.Len() > 0 {
			out.WriteString(send(wireRequest(request.String())).lines())
			request.Reset()
		}
	}
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, ">") || firstWireLine.MatchString(line) {
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

func wireRequest(text string) WireRequest {
	head, body, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	first, rest, _ := strings.Cut(head, "\n")
	r := WireRequest{Body: body}
	r.Method, r.Target, _ = strings.Cut(first, " ")
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		r.Headers = append(r.Headers, name, value)
	}
	return r
}

// lines are those of an answer in a file.
func (a WireAnswer) lines() string {
	return fmt.Sprintf("< %d %s\n< %s\n", a.Status, a.ContentType, strings.ReplaceAll(a.Body, "\n", "\n< "))
}
