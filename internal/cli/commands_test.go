package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/servertest"
)

// heard is what a running command has printed so far.
type heard struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}

// lasting is a command that runs until it is interrupted.
type lasting struct {
	t              *testing.T
	signals        chan os.Signal
	stdout, stderr heard
	code           chan int
}

func start(t *testing.T, args ...string) *lasting {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with an environment.
func startWith(t *testing.T, environ []string, args ...string) *lasting {
	t.Helper()
	l := &lasting{t: t, signals: make(chan os.Signal, 1), code: make(chan int, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	go func() {
		l.code <- Run(ctx, Process{Args: args, Environ: environ, Stdout: &l.stdout, Stderr: &l.stderr, Signals: l.signals})
	}()
	return l
}

// waitFor waits until the command has printed a text.
func (l *lasting) waitFor(text string) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("the command prints %q", text), func() bool {
		return strings.Contains(l.stdout.String()+l.stderr.String(), text)
	})
}

// interrupt ends the command and returns what it left.
func (l *lasting) interrupt() result {
	l.t.Helper()
	l.signals <- syscall.SIGINT
	select {
	case code := <-l.code:
		return result{code, l.stdout.String(), l.stderr.String()}
	case <-time.After(20 * time.Second):
		l.t.Fatal("the command went on after SIGINT")
		return result{}
	}
}

func instancesOf(t *testing.T, server *servertest.Server, service string) opsv1.Instances {
	t.Helper()
	var all opsv1.Instances
	status, body := fetchText(t, server.URL()+"/rollcall/v1/instances?service="+service, nil)
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// An instance with a very short life lives as long as the command runs, whatever
// happens to it, and goes at once when the command ends.
func TestKeepBeating(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	l := start(t, "register", "orders", "10.0.0.7:8080", "--beat", "--via", "http", "-s", server.URL(),
		"--metadata", "preserved.heart.beat.interval=50", "--metadata", "preserved.heart.beat.timeout=2000",
		"--metadata", "preserved.ip.delete.timeout=4000")
	l.waitFor("keeping it alive over http; interrupt to deregister")
	present := func() bool { return instancesOf(t, server, "orders").Total == 1 }
	eventually(t, "it beats", func() bool {
		all := instancesOf(t, server, "orders")
		return all.Total == 1 && *all.Instances[0].SinceBeat < 50
	})
	if got := run(t, Process{}, "deregister", "orders", "10.0.0.7:8080", "-s", server.URL()); got.code != exitOK && !strings.Contains(got.stderr, "is still in") {
		t.Errorf("deregister: %+v", got)
	}
	eventually(t, "it is registered again", present)

	got := l.interrupt()
	if got.code != exitOK || got.stdout != "registered 10.0.0.7:8080 in orders\nderegistered 10.0.0.7:8080 in orders\n" {
		t.Errorf("got %+v", got)
	}
	if present() {
		t.Error("it is still there")
	}
}

// A server that forgot the instance, or is away for a while, is told again.
func TestKeepingGoesOn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	registered, away := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case away:
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPost:
			registered++
			_, _ = io.WriteString(w, "ok")
		case strings.HasSuffix(r.URL.Path, "/beat"):
			_, _ = io.WriteString(w, `{"code":20404,"clientBeatInterval":200}`)
		default:
			_, _ = io.WriteString(w, `{"status":"UP"}`)
		}
	}))
	t.Cleanup(server.Close)
	is := func(gone bool) {
		mu.Lock()
		defer mu.Unlock()
		away = gone
	}
	l := start(t, "register", "orders", "10.0.0.7:8080", "--beat", "--via", "http", "-s", server.URL)
	l.waitFor("keeping it alive")
	is(true)
	l.waitFor("not connected, going on: ")
	is(false)
	l.waitFor("connected to " + strings.TrimPrefix(server.URL, "http://") + " over http")
	if got := l.interrupt(); got.code != exitOK {
		t.Errorf("got %+v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if registered < 2 {
		t.Errorf("registered %d times, want 2 or more", registered)
	}
}

// The commands that change something send what Nacos reads.
func TestRegisterAtNacos(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 8)
	there := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + "?" + r.URL.Query().Encode()
		switch r.Method {
		case http.MethodGet:
			if !there {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, "caused: no matched ip found!;")
			}
		case http.MethodDelete:
			there = false
		}
	}))
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"register", "g@@orders", "[::1]:80", "--namespace", "dev", "--cluster", "c", "--weight", "2.5", "--metadata", "a=1=2", "--disabled", "--json"},
			[]string{"POST /nacos/v1/ns/instance?clusterName=c&enabled=false&ephemeral=true&groupName=g&healthy=true&ip=%3A%3A1&metadata=%7B%22a%22%3A%221%3D2%22%7D&namespaceId=dev&port=80&serviceName=g%40%40orders&weight=2.5"},
		},
		{
			[]string{"register", "orders", "h:80", "--persistent"},
			[]string{"POST /nacos/v1/ns/instance?clusterName=DEFAULT&enabled=true&ephemeral=false&groupName=DEFAULT_GROUP&healthy=true&ip=h&metadata=%7B%7D&port=80&serviceName=DEFAULT_GROUP%40%40orders&weight=1"},
		},
		{
			[]string{"deregister", "orders", "h:80"},
			[]string{
				"GET /nacos/v1/ns/instance?clusterName=DEFAULT&ephemeral=true&groupName=DEFAULT_GROUP&ip=h&port=80&serviceName=DEFAULT_GROUP%40%40orders",
				"DELETE /nacos/v1/ns/instance?clusterName=DEFAULT&ephemeral=true&groupName=DEFAULT_GROUP&ip=h&port=80&serviceName=DEFAULT_GROUP%40%40orders",
				"GET /nacos/v1/ns/instance?clusterName=DEFAULT&ephemeral=true&groupName=DEFAULT_GROUP&ip=h&port=80&serviceName=DEFAULT_GROUP%40%40orders",
			},
		},
	} {
		got := run(t, Process{}, append(tt.args, "-s", server.URL)...)
		if got.code != exitOK {
			t.Errorf("%v: %+v", tt.args, got)
		}
		for _, want := range tt.want {
			if request := <-asked; request != want {
				t.Errorf("%v asked\n%s, want\n%s", tt.args, request, want)
			}
		}
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	do := func(args ...string) {
		t.Helper()
		if got := run(t, Process{}, append(args, "-s", server.URL())...); got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	do("register", "orders", "10.0.0.1:80")
	plain := start(t, "history", "--follow", "--pushes", "--service", "orders", "-s", server.URL())
	asJSON := start(t, "history", "-f", "--kind", "removed", "--limit", "1", "--json", "-s", server.URL())
	plain.waitFor("10.0.0.1:80")
	subscribe(t, server, "orders")
	do("register", "stock", "10.0.0.9:80")
	do("register", "orders", "10.0.0.2:80")
	do("deregister", "orders", "10.0.0.1:80")
	plain.waitFor("after the change")
	plain.waitFor("deregister from 127.0.0.1")
	asJSON.waitFor(`"removed"`)

	got := plain.interrupt()
	if got.code != exitOK || strings.Contains(got.stdout, "10.0.0.9") || strings.Count(got.stdout, "TIME") != 1 || got.stderr != "" {
		t.Errorf("got %+v", got)
	}
	got = asJSON.interrupt()
	var event opsv1.Event
	if err := json.Unmarshal([]byte(got.stdout), &event); err != nil || got.code != exitOK || event.Instance.IP != "10.0.0.1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A history that is longer than a page is read page after page.
func TestHistoryIsReadThrough(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("cursor")+"/"+q.Get("limit"))
		answer := opsv1.History{}
		switch q.Get("cursor") {
		case "0":
			answer.Next = 100 // and nothing found so far
		case "100":
			answer.Next, answer.Events = 50, []opsv1.Event{{Seq: 60, Kind: "removed"}}
		case "50":
			answer.Events = []opsv1.Event{{Seq: 10, Kind: "registered"}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	got := run(t, Process{}, "history", "--limit", "1200", "--json", "-s", server.URL)
	if got.code != exitOK || strings.Index(got.stdout, "registered") > strings.Index(got.stdout, "removed") {
		t.Errorf("got %+v", got)
	}
	if want := "0/1000 100/1000 50/1000"; strings.Join(asked, " ") != want {
		t.Errorf("asked %v, want %s", asked, want)
	}
}

func TestListIsReadThrough(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := opsv1.Services{Total: 1001}
		switch r.URL.Query().Get("offset") {
		case "0":
			page.Services = make([]opsv1.ServiceSummary, 1000)
		case "1000":
			page.Services = []opsv1.ServiceSummary{{Service: opsv1.Service{Group: "DEFAULT_GROUP", Service: "the last"}}}
		default:
			t.Errorf("asked for %s", r.URL)
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(server.Close)
	if got := run(t, Process{}, "list", "-s", server.URL); strings.Count(got.stdout, "\n") != 1002 || !strings.Contains(got.stdout, "the last") {
		t.Errorf("got %d lines, code %d", strings.Count(got.stdout, "\n"), got.code)
	}
}

func TestAnotherKindOfServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	got := run(t, Process{}, "list", "-s", server.URL)
	want := "rollcall: " + server.URL + " answered 404 Not Found for /rollcall/v1/services; it is no Rollcall server, or one of another version\n"
	if got.code != exitFailed || got.stderr != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// A backup that breaks off leaves the file of before.
func TestBackupBreaksOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	writeFile(t, path, []byte("of yesterday"))
	got := run(t, Process{}, "backup", path, "-s", server.URL)
	if got.code != exitFailed || !strings.Contains(got.stderr, "broke off after 10 bytes") || !strings.Contains(got.stderr, "not complete") {
		t.Errorf("got %+v", got)
	}
	if content := readFile(t, path); string(content) != "of yesterday" {
		t.Errorf("the file has %q", content)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if got := run(t, Process{}, "backup", "-s", server.URL); got.code != exitFailed || got.stdout != "half of it" {
		t.Errorf("to standard output: %+v", got)
	}
}

// Nobody knows what became of a restore whose server went away.
func TestRestoreBreaksOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "backup")
	writeFile(t, path, make([]byte, 1<<20))
	got := run(t, Process{}, "restore", path, "--yes", "-s", server.URL)
	if got.code != exitFailed || !strings.Contains(got.stderr, server.URL+" broke off") || !strings.Contains(got.stderr, "`rollcall export` shows whether the backup is in place") {
		t.Errorf("got %+v", got)
	}
}

func TestBackupFileIsPrivate(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	path := filepath.Join(t.TempDir(), "backup")
	if got := run(t, Process{}, "backup", path, "-s", server.URL()); got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	for _, name := range []string{"orders", "other", "billing@@invoices"} {
		if got := run(t, Process{}, "register", name, "10.0.0.1:80", "-s", server.URL()); got.code != exitOK {
			t.Fatalf("register: %+v", got)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"list", ""}, "orders\nother\nbilling@@invoices\n:4\n"},
		{[]string{"why", "o"}, "orders\nother\n:4\n"},
		{[]string{"deregister", "bill"}, "billing@@invoices\n:4\n"},
		{[]string{"register", "orders", ""}, ":4\n"},
		{[]string{"history", "--service", "or"}, "orders\n:4\n"},
		{[]string{"history", "--kind", "re"}, "registered\nupdated\nremoved\nhealthy\nunhealthy\nservice-created\nservice-updated\n" +
			"service-removed\nsubscribed\nunsubscribed\nexpiry-held\nexpiry-released\nswitch-set\n:4\n"},
		{[]string{"why", "orders", "--api", ""}, "v1\nv2\nv3\ngrpc\n:4\n"},
		{[]string{"list", "-s", "127.0.0.1:1", ""}, ":1\n"},
	} {
		got := run(t, Process{Environ: []string{"ROLLCALL_SERVER=" + server.URL()}}, append([]string{"__complete"}, tt.args...)...)
		if got.code != exitOK || got.stdout != tt.want {
			t.Errorf("%v: got %q, want %q", tt.args, got.stdout, tt.want)
		}
	}
}

// Clients name themselves; their names must not control the operator's terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	if got := run(t, Process{}, "register", "orders", "10.0.0.1:80", "-s", server.URL()); got.code != exitOK {
		t.Fatalf("register: %+v", got)
	}
	fetchText(t, server.URL()+"/nacos/v1/ns/instance/list?serviceName=orders&udpPort=9&clusters=a%1b%5b2J", http.Header{"User-Agent": {"Nacos-Java-Client:v1.4.2"}})
	got := run(t, Process{}, "why", "orders", "-s", server.URL())
	if strings.Contains(got.stdout, "\x1b") || !strings.Contains(got.stdout, "a\ufffd[2J") {
		t.Errorf("got %q", got.stdout)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders": "orders", "DEFAULT_GROUP@@orders": "orders", "g@@orders": "g@@orders", "g@@a@@b": "g@@a@@b",
		"DEFAULT_GROUP@@a@@b": "DEFAULT_GROUP@@a@@b", "": "", "@@a": "", "a@@": "",
	} {
		s, err := parseService(text)
		if (err != nil) != (want == "") || err == nil && s.String() != want {
			t.Errorf("%q: got %s, %v, want %q", text, s, err, want)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.7:80": "10.0.0.7:80", "[::1]:80": "[::1]:80", "host.example:0": "host.example:0",
		"10.0.0.7": "", "::1": "", "[::1]": "", ":80": "", "h:": "", "h:-1": "", "h:65536": "", "h:http": "", "": "",
	} {
		e, err := parseEndpoint(text)
		if (err != nil) != (want == "") || err == nil && e.String() != want {
			t.Errorf("%q: got %s, %v, want %q", text, e, err, want)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.7": "10.0.0.7", "::1": "::1", "[::1]": "::1", "host": "host", "[::1]:80": "[::1]:80", "h:80": "h:80", "": "", ":80": "", "a:b:c": "",
	} {
		e, err := parseAddress(text)
		if (err != nil) != (want == "") || err == nil && e.String() != want {
			t.Errorf("%q: got %s, %v, want %q", text, e, err, want)
		}
	}
}
