package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// result is what a finished command left.
type result struct {
	code           int
	stdout, stderr string
}

// run executes one command line without a process, and ends it after a minute
// if it does not end by itself.
func run(t *testing.T, p Process, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p.Args, p.Stdout, p.Stderr = args, &stdout, &stderr
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := Run(ctx, p)
	return result{code, stdout.String(), stderr.String()}
}

func TestExitCodesAndTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // that the output must contain
	}{
		{"no command shows help", nil, exitOK, "Exit codes: 0 done, 1 failed, 2 misuse", ""},
		{"help", []string{"help"}, exitOK, "Usage:", ""},
		{"version", []string{"version"}, exitOK, "rollcall ", ""},
		{"version takes nothing", []string{"version", "x"}, exitUsage, "", `rollcall: unknown command "x"`},
		{"unknown command", []string{"bogus"}, exitUsage, "", `rollcall: unknown command "bogus"`},
		{"unknown flag", []string{"ready", "--bogus"}, exitUsage, "", "rollcall: unknown flag: --bogus"},
		{"nearly a command", []string{"lst"}, exitUsage, "", "rollcall: unknown command \"lst\" for \"rollcall\"; did you mean one of these: list\n"},
		{"nearly a flag", []string{"list", "--jsn"}, exitUsage, "", "rollcall: unknown flag: --jsn; see `rollcall list --help`\n"},
		{"no time", []string{"list", "--timeout", "0s"}, exitUsage, "", "timeout: 0s is no time to wait"},
		{"bad server", []string{"ready", "-s", "ftp://x"}, exitUsage, "", `server: "ftp://x" is no address`},
		{"nobody there", []string{"ready", "-s", "127.0.0.1:1"}, exitFailed, "", "nothing listens at http://127.0.0.1:1; start a server with `rollcall serve`"},
		{"unknown topic of help", []string{"help", "nonsense"}, exitUsage, "", `rollcall: unknown command "nonsense"`},
		{"topic of help", []string{"help", "drain"}, exitOK, "Give an instance the weight 0", ""},
		{"topic of help of the library", []string{"help", "completion"}, exitOK, "autocompletion", ""},
		{"unknown shell", []string{"completion", "nonsense"}, exitUsage, "", `rollcall: unknown command "nonsense"`},
		{"completion alone", []string{"completion"}, exitOK, "autocompletion", ""},
		{"weight", []string{"register", "orders", "10.0.0.7:80", "--weight", "-1"}, exitUsage, "", "rollcall: weight: -1 is none; write 0 to 10000\n"},
		{"weight that is no number", []string{"register", "orders", "10.0.0.7:80", "--weight", "NaN", "--persistent"}, exitUsage, "", "rollcall: weight: NaN is none"},
		{"weight to drain to", []string{"drain", "orders", "10.0.0.7:80", "--weight", "10001"}, exitUsage, "", "rollcall: weight: 10001 is none"},
		{"wait", []string{"drain", "orders", "10.0.0.7:80", "--wait", "-1s"}, exitUsage, "", "rollcall: wait: -1s is no time to wait"},
		{"port 0", []string{"register", "orders", "10.0.0.7:0"}, exitUsage, "", "rollcall: instance: nobody can be called at port 0"},
		{"two separators", []string{"register", "g1@@svc@@x", "10.0.0.7:80", "--beat"}, exitUsage, "", "rollcall: service: @@ parts group and name"},
		{"no password", []string{"list", "--user", "u", "--password-file", os.DevNull}, exitUsage, "", "rollcall: password-file: /dev/null is empty\n"},
		{"no password for the SDK", []string{"services", "--user", "u", "--password-file", os.DevNull}, exitUsage, "", "rollcall: password-file: /dev/null is empty\n"},
		{"completion", []string{"completion", "bash"}, exitOK, "bash completion", ""},
		{"completion of commands", []string{"__complete", "ver"}, exitOK, "version\t", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, Process{}, tt.args...)
			if got.code != tt.code || !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("got %+v, want code %d, stdout with %q, stderr with %q", got, tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}

// answering starts a server that gives one answer to /readyz.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestReady(t *testing.T) {
	t.Parallel()
	up, down := answering(t, http.StatusOK, "ok"), answering(t, http.StatusServiceUnavailable, "loading\n")

	if got := run(t, Process{}, "ready", "--server", up); got.code != exitOK || got.stdout != up+" is ready\n" {
		t.Errorf("up: %+v", got)
	}
	if got := run(t, Process{Environ: []string{"ROLLCALL_SERVER=" + up}}, "ready", "--json"); got.code != exitOK || !strings.Contains(got.stdout, `"ready": true`) {
		t.Errorf("by environment: %+v", got)
	}
	if got := run(t, Process{Environ: []string{"ROLLCALL_SERVER=" + up}}, "ready", "-s", down); got.code != exitFailed ||
		got.stderr != "rollcall: "+down+" answered 503 Service Unavailable: loading\n" {
		t.Errorf("down, the flag beats the environment: %+v", got)
	}
}

func TestSignalEndsClientCommand(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	signals := make(chan os.Signal, 1)
	done := make(chan result, 1)
	go func() { done <- run(t, Process{Signals: signals}, "ready", "-s", server.URL) }()
	<-asked
	signals <- syscall.SIGINT
	select {
	case got := <-done:
		if got.code != exitFailed || got.stderr != "rollcall: stopped by interrupt\n" {
			t.Errorf("got %+v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the command went on after SIGINT")
	}
}

func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	report(&b, &usageError{errorText("a\nb")})
	if got, want := b.String(), "rollcall: 2 faults:\n  a\n  b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
