package cli

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestTranscripts runs the commands in testdata/commands, each file against a
// server of its own, and compares what they print. -update writes the files anew.
//
//	$ rollcall …    a command; what follows is its standard output, a dot for an
//	                empty line,
//	! …             lines of its standard error,
//	exit N          and its exit code if that is not 0
//	% …             something that happens: see [theatre.happen]
//	# …             a remark
//
// $DIR is a folder of the test. Times, ages, ports and the like are replaced by
// words, and blanks between columns are two.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/commands/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s differs; after a look at the difference run go test -update\n%s", file, firstDifference(got, string(want)))
			}
		})
	}
}

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			line := ""
			if i < len(w) {
				line = w[i]
			}
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], line)
		}
	}
	return fmt.Sprintf("%d lines are missing after line %d", len(w)-len(g), len(g))
}

// play runs a transcript and returns it with what the commands print now.
func play(t *testing.T, script string) string {
	s := &theatre{t: t, server: servertest.New(t), dir: t.TempDir()}
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ rollcall"):
			out.WriteString(line + "\n" + s.run(strings.TrimPrefix(line, "$ rollcall")))
		case strings.HasPrefix(line, "% "):
			out.WriteString(line + "\n")
			s.happen(strings.Fields(line)[1:])
		case strings.HasPrefix(line, "#"), line == "":
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// theatre is where a transcript is played.
type theatre struct {
	t      *testing.T
	server *servertest.Server
	dir    string
	stdin  []byte
	stdout string // of the last command, as it was
	grpc   *connection
}

// run runs one command and returns what it printed, calmed.
func (s *theatre) run(line string) string {
	s.t.Helper()
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		args = append(args, strings.ReplaceAll(strings.Trim(word, "'"), "$DIR", s.dir))
	}
	got := run(s.t, Process{Environ: []string{"ROLLCALL_SERVER=" + s.server.URL()}, Stdin: bytes.NewReader(s.stdin)}, args...)
	s.stdout = got.stdout
	if args[0] == "clients" {
		got.stdout = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`).ReplaceAllString(got.stdout, "SOON")
	}
	out := strings.ReplaceAll(s.calm(got.stdout), "\n\n", "\n.\n")
	for line := range strings.Lines(s.calm(got.stderr)) {
		out += "! " + line
	}
	if got.code != 0 {
		out += fmt.Sprintf("exit %d\n", got.code)
	}
	return out
}

// calm replaces what differs from run to run.
func (s *theatre) calm(text string) string {
	text = strings.ReplaceAll(text, s.server.URL(), "SERVER")
	text = strings.ReplaceAll(text, s.dir, "$DIR")
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\dT[\d:.]+Z`, "TIME"},
		{`127\.0\.0\.1:\d{4,5}`, "127.0.0.1:PORT"},
		{`\b\d+(\.\d+)?(µs|ms|s) after`, "SOON after"},
		{`(ephemeral +)\d+(\.\d+)?m?s `, "${1}AGE "},
		{`"(time|seq|revision|sinceBeat|expiresIn|since|took|lag|waitingFor|lastSeen|sinceSeen|acknowledgedAt|acknowledged|index|bytes|next)": [\d.]+`, `"$1": N`},
		{`\d+ bytes`, "N bytes"},
		{`at byte \d+`, "at byte N"},
		{`"id": "[0-9a-f]{32}"`, `"id": "ID"`},
		{`server [0-9a-f]{32}`, "server ID"},
		{`\b\d{13}_127\.0\.0\.1_\d+\b`, "CONNECTION"},
		{`(\S)  +`, "$1  "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// happen does what is no command:
//
//	subscribe SERVICE  a client looks a service up, is pushed to and acknowledges
//	connect AGENT      a gRPC client connects, registers 10.0.0.5:8080 in orders and
//	                   subscribes to it, and acknowledges the push that greets it
//	push N             it gets, and acknowledges, so many pushes more
//	ignored push       it gets one and says nothing
//	disconnect         it ends its connection, and the server has noticed
//	acknowledged N     wait until the history has so many pushes
//	removed SERVICE    wait until a service has no instances
//	damage FILE        a byte in the middle of a file changes
//	stdin FILE         the commands that follow read a file from standard input
//	kept FILE          the output of the last command goes into a file
//	another server     the commands that follow ask a fresh server
func (s *theatre) happen(words []string) {
	s.t.Helper()
	file := strings.ReplaceAll(words[len(words)-1], "$DIR", s.dir)
	switch words[0] {
	case "subscribe":
		subscribe(s.t, s.server, words[1])
	case "connect":
		s.grpc = connect(s.t, s.server, words[1])
	case "push":
		for range int(words[1][0] - '0') {
			s.grpc.acknowledge()
		}
	case "ignored":
		s.grpc.stream.Expect(s.t, grpcv2.NotifySubscriber)
	case "disconnect":
		s.grpc.client.Close()
		s.until("/rollcall/v1/clients?protocol=grpc", func(body string) bool { return strings.Contains(body, `"total":0`) })
	case "acknowledged":
		s.until("/rollcall/v1/pushes", func(body string) bool { return strings.Count(body, `"kind":"acknowledged"`) == int(words[1][0]-'0') })
	case "removed":
		s.until("/rollcall/v1/instances?service="+words[1], func(body string) bool { return strings.Contains(body, `"total":0`) })
	case "damage":
		content := readFile(s.t, file)
		content[len(content)/2] ^= 0xff
		writeFile(s.t, file, content)
	case "stdin":
		s.stdin = readFile(s.t, file)
	case "kept":
		writeFile(s.t, file, []byte(s.stdout))
	case "another":
		s.server = servertest.New(s.t)
	default:
		s.t.Fatalf("nothing is known that is called %q", words[0])
	}
}

// until asks a path of the server until its answer is right.
func (s *theatre) until(path string, right func(body string) bool) {
	s.t.Helper()
	eventually(s.t, path+" is as expected", func() bool {
		_, body := fetchText(s.t, s.server.URL()+path, nil)
		return right(body)
	})
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		<-tick.C
	}
}

// fetchText returns the status and the body of an answer.
func fetchText(t *testing.T, target string, header http.Header) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}
