package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
	rollcall "github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// A whole run as a user would have it: a scenario, all forms of output, and a
// comparison with itself.
func TestBench(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, file("mine.yaml"), []byte(`
name: mine
defaults: {protocol: [http, grpc], connections: 2, warmup: 10ms, duration: 200ms}
workloads:
  - {workload: query, services: 3, instances: 2}
`))
	args := []string{"bench", "-s", server.Addr(), "--grpc", server.Addr(), "--scenario", file("mine.yaml")}
	got := run(t, Process{}, append(args, "--save", file("a.json"), "--html", file("a.html"), "--interval", "20ms")...)
	if got.code != exitOK || !strings.Contains(got.stdout, "query of 2  http") || !strings.Contains(got.stdout, "query of 2  grpc") || got.stderr != "" {
		t.Fatalf("got %+v", got)
	}
	if page, err := os.ReadFile(file("a.html")); err != nil || !strings.Contains(string(page), "query of 2 via grpc") {
		t.Errorf("the page: %v", err)
	}
	got = run(t, Process{}, append(args, "--json", "--protocol", "http")...)
	if got.code != exitOK || !strings.Contains(got.stdout, `"format": 1`) || strings.Contains(got.stdout, `"protocol": "grpc"`) {
		t.Errorf("json: %+v", got)
	}
	writeFile(t, file("b.json"), []byte(got.stdout))
	got = run(t, Process{}, "bench", "compare", file("a.json"), file("b.json"))
	if got.code != exitOK || !strings.Contains(got.stdout, "a.json") || !strings.Contains(got.stdout, "per second") {
		t.Errorf("compare: %+v", got)
	}
	got = run(t, Process{}, append(args, "--against", "other="+server.Addr()+",grpc="+server.Addr(), "--rounds", "2", "--protocol", "http")...)
	if got.code != exitOK || !strings.Contains(got.stdout, "other") || !strings.Contains(got.stdout, "ratio") {
		t.Errorf("against: %+v", got)
	}
}

func TestBenchMisuse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.yaml")
	writeFile(t, file, []byte("workloads:\n  - {workload: query, instanses: 10}\n"))
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"another machine", []string{"-s", "10.0.0.7:8848"}, exitUsage, "10.0.0.7:8848 is not of this machine: say --allow-remote"},
		{"gRPC of another machine", []string{"--grpc", "10.0.0.7:9848"}, exitUsage, "10.0.0.7:9848 is not of this machine"},
		{"against another machine", []string{"--against", "x=10.0.0.7:8848"}, exitUsage, "--allow-remote"},
		{"against nothing", []string{"--against", "x"}, exitUsage, "write NAME=host:port"},
		{"against itself", []string{"--against", "rollcall=127.0.0.1:1"}, exitUsage, "the name is taken"},
		{"against with what is none", []string{"--against", "x=127.0.0.1:1,color=blue"}, exitUsage, `"color" is none of grpc, pid, insecure, user`},
		{"a path", []string{"-s", "http://127.0.0.1:1/registry"}, exitUsage, "write it without /registry"},
		{"half a login", []string{"--user", "nacos"}, exitUsage, "user and password-file: give both or none"},
		{"gRPC by another scheme", []string{"--grpc", "tcp://127.0.0.1:1"}, exitUsage, "http:// or https:// before it"},
		{"nobody to log in to", []string{"-s", "127.0.0.1:1", "--user", "nacos", "--password-file", file}, exitFailed, "rollcall does not answer"},
		{"profile", []string{"--profile", "huge"}, exitUsage, `profile: "huge" is none; there are smoke, laptop, big`},
		{"only", []string{"--only", "sleep"}, exitUsage, `laptop has no workload "sleep"`},
		{"a key that is none", []string{"--scenario", file}, exitUsage, "field instanses not found"},
		{"both", []string{"--scenario", file, "--profile", "smoke"}, exitUsage, "exclude each other"},
		{"protocol", []string{"--protocol", "smtp"}, exitUsage, "nothing is left to run"},
		{"connections", []string{"--connections", "-1"}, exitUsage, "connections: -1 is not above 0"},
		{"rounds", []string{"--rounds", "0"}, exitUsage, "rounds: 0 is not above 0"},
		{"duration", []string{"--duration", "-3s"}, exitUsage, "duration: -3s is not above 0"},
		{"interval", []string{"--interval", "0s"}, exitUsage, "interval: 0s is not above 0"},
		{"count", []string{"--count", "-5"}, exitUsage, "count: -5 is not above 0"},
		{"a rate for what has its own", []string{"--only", "churn,idle", "--rate", "9"}, exitUsage, "rate: the workloads"},
		{"one file for two", []string{"--save", "x", "--html", "./x"}, exitUsage, "both would write x"},
		{"restart without a command", []string{"--only", "restart"}, exitUsage, "--restart-command"},
		{"process", []string{"--pid", "999999999"}, exitUsage, "process 999999999"},
		{"compare", []string{"compare"}, exitUsage, "requires at least 1 arg"},
		{"compare nothing", []string{"compare", file}, exitFailed, "no saved run"},
		{"workloads", []string{"workloads"}, exitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, Process{}, append([]string{"bench"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("got %+v, want code %d and %q", got, tt.code, tt.stderr)
			}
		})
	}
}

// What a scenario may leave out is listed with what it then is.
func TestBenchWorkloads(t *testing.T) {
	t.Parallel()
	got := run(t, Process{}, "bench", "workloads")
	for _, want := range []string{"http, grpc", "services: 100, instances: 10, connections: 64, warmup: 1s, duration: 5s", "mix: {query: 60, beat: 30, change: 10}", "drain: 500ms"} {
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
}

// A server that speaks TLS and takes a login is measured as any other, by itself and
// beside one in clear text.
func TestBenchTLS(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), certstest.NewAuthority(t)
	certFile, keyFile := authority.Issue(t, 1, time.Now().Add(time.Hour)).Write(t, dir)
	caFile := certstest.WriteFile(t, filepath.Join(dir, "ca.pem"), authority.PEM())
	password := certstest.WriteFile(t, filepath.Join(dir, "password"), []byte("nacos\n"))
	secure := servertest.New(t, func(c *rollcall.Config) { c.TLS.Files.Cert, c.TLS.Files.Key = certFile, keyFile })
	plain := servertest.New(t)
	args := []string{"bench", "--profile", "smoke", "--only", "query", "--duration", "300ms", "--warmup", "10ms"}
	got := run(t, Process{}, append(args, "-s", "https://"+secure.Addr(), "--grpc", secure.Addr(), "--ca-file", caFile, "--user", "nacos", "--password-file", password)...)
	if got.code != exitOK || strings.Contains(got.stdout, "FAILED") {
		t.Errorf("TLS: %+v", got)
	}
	beside := "secure=https://" + secure.Addr() + ",grpc=https://" + secure.Addr() + ",user=nacos,password-file=" + password
	for option, want := range map[string]int{"ca-file=" + caFile: exitOK, "insecure": exitOK, "server-name=localhost": exitFailed} {
		got = run(t, Process{}, append(args, "-s", plain.Addr(), "--grpc", plain.Addr(), "--against", beside+","+option)...)
		if got.code != want || strings.Contains(got.stderr, "name its authority with ca-file") != (want == exitFailed) {
			t.Errorf("%s: %+v", option, got)
		}
	}
	got = run(t, Process{}, append(args, "-s", plain.Addr(), "--user", "nacos", "--password-file", certFile+".no")...)
	if got.code != exitUsage || !strings.Contains(got.stderr, "password-file") {
		t.Errorf("no password: %+v", got)
	}
}

// A server that is not there is one error, however much was to be run.
func TestBenchOfNobody(t *testing.T) {
	t.Parallel()
	got := run(t, Process{}, "bench", "-s", "127.0.0.1:1", "--profile", "smoke")
	if got.code != exitFailed || got.stdout != "" || strings.Count(got.stderr, "via http") != 1 || strings.Count(got.stderr, "connection refused") != 2 {
		t.Errorf("got %+v", got)
	}
}
