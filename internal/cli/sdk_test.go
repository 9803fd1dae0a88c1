package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// foreign is a server without the operator's API, which wants a login if password is not
// empty.
func foreign(t *testing.T, server *servertest.Server, password string) string {
	t.Helper()
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, operatorAPI):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, "/auth/login") || strings.HasSuffix(r.URL.Path, "/auth/users/login"):
			if err := r.ParseForm(); err != nil || r.Form.Get("username") != "alice" || r.Form.Get("password") != password {
				http.Error(w, "unknown user!", http.StatusForbidden)
				return
			}
			_, _ = io.WriteString(w, `{"accessToken":"t0ken","tokenTtl":18000}`)
		case password != "" && r.URL.Query().Get("accessToken") != "t0ken" && r.Header.Get("accessToken") != "t0ken":
			http.Error(w, "user not found!", http.StatusForbidden)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestListElsewhere: of a server that is no Rollcall, list shows what clients see.
func TestListElsewhere(t *testing.T) {
	t.Parallel()
	address := foreign(t, servertest.New(t), "")
	for _, tt := range []struct{ args, want string }{
		{"register orders 10.0.0.7:80 --persistent", "registered 10.0.0.7:80 in orders\n"},
		{"list", "SERVICE\norders\n"},
		{"list --group other", "there are no services in group other of namespace public\n"},
		{"list orders", "INSTANCE     CLUSTER  HEALTH   WEIGHT  KIND        REMARKS  METADATA\n10.0.0.7:80  DEFAULT  healthy  1       persistent\n"},
		{"drain orders 10.0.0.7:80 --wait 0s", "drained 10.0.0.7:80 in orders\n"},
		{"__complete drain or", "orders\n:4\n"},
		{"__complete drain orders 10", "10.0.0.7:80\n:4\n"},
	} {
		got := run(t, Process{Environ: []string{"ROLLCALL_SERVER=" + address}}, strings.Fields(tt.args)...)
		if got.code != exitOK || got.stdout != tt.want {
			t.Errorf("%s: %+v, want %q", tt.args, got, tt.want)
		}
	}
	if got := run(t, Process{}, "history", "-s", address); got.code != exitFailed || !strings.Contains(got.stderr, " is Nacos 1.4.8, and `rollcall history` asks for what Rollcall alone knows") {
		t.Errorf("history: %+v", got)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	address := foreign(t, servertest.New(t), "p%+&$#")
	good, bad := filepath.Join(t.TempDir(), "good"), filepath.Join(t.TempDir(), "bad")
	writeFile(t, good, []byte("p%+&$#\n"))
	writeFile(t, bad, []byte("guess"))
	for _, tt := range []struct {
		args []string
		code int
		want string // of both outputs
	}{
		{[]string{"register", "orders", "10.0.0.7:80", "--persistent", "--user", "alice", "--password-file", good}, exitOK, "registered"},
		{[]string{"services", "--user", "alice", "--password-file", good}, exitOK, "orders"},
		{[]string{"switches", "pushEnabled", "--user", "alice", "--password-file", good}, exitOK, "true"},
		{[]string{"switches", "--user", "alice", "--password-file", bad}, exitFailed, "log in as alice: "},
		{[]string{"services", "--user", "alice", "--password-file", bad}, exitFailed, "log in with --user"},
		{[]string{"services"}, exitFailed, "log in with --user"},
		{[]string{"services", "--user", "alice", "--password-file", good + ".no"}, exitUsage, "password-file: "},
	} {
		got := run(t, Process{}, append(tt.args, "-s", address)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%v: %+v, want code %d and %q", tt.args, got, tt.code, tt.want)
		}
	}
}

// TestRegisterVia: gRPC can keep an instance alive, or register a persistent one; what is
// set for all commands does not keep anybody from registering once.
func TestRegisterVia(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	for _, tt := range []struct {
		args    string
		environ []string
		code    int
		want    string // of both outputs
	}{
		{"register orders 10.0.0.1:80 --via grpc", nil, exitUsage, "the instance would go with this command"},
		{"register orders 10.0.0.1:80", []string{"ROLLCALL_VIA=grpc"}, exitOK, "registered"},
		{"register carts 10.0.0.1:80 --persistent --via grpc", nil, exitOK, "registered"},
		{"register carts 10.0.0.1:0 --persistent --via grpc", nil, exitUsage, "nobody can be called at port 0"},
		{"list carts", nil, exitOK, "persistent"},
	} {
		got := run(t, Process{Environ: tt.environ}, append(strings.Fields(tt.args), "-s", server.URL())...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: %+v, want code %d and %q", tt.args, got, tt.code, tt.want)
		}
	}
	l := start(t, "register", "stock", "10.0.0.1:80", "--beat", "--via", "grpc", "-s", server.URL())
	l.waitFor("keeping it alive over grpc")
	if all := instancesOf(t, server, "stock"); all.Total != 1 || all.Instances[0].Owners[0].Kind != "connection" {
		t.Errorf("got %+v", all)
	}
	if got := l.interrupt(); got.code != exitOK || instancesOf(t, server, "stock").Total != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestLoginOfThree: a server that logs in as 3.x alone does.
func TestLoginOfThree(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/nacos/v3/auth/user/login" && r.FormValue("username") == "alice" && r.FormValue("password") == "secret":
			_, _ = io.WriteString(w, `{"accessToken":"t0ken","tokenTtl":18000}`)
		case r.URL.Path == switchesV3 && r.URL.Query().Get("accessToken") == "t0ken":
			_, _ = io.WriteString(w, `{"code":0,"message":"success","data":{"pushEnabled":true}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "password")
	writeFile(t, file, []byte("secret"))
	got := run(t, Process{}, "switches", "pushEnabled", "--user", "alice", "--password-file", file, "-s", server.URL)
	if got.code != exitOK || !strings.Contains(got.stdout, "pushEnabled  true") {
		t.Errorf("got %+v", got)
	}
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "rollcall")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "client.yaml")
	other := filepath.Join(home, "other.yaml")
	writeFile(t, other, []byte("namespace: other\nserver: "+server.URL()))
	for _, tt := range []struct {
		name, content string
		environ, args []string
		code          int
		want          string // of both outputs
	}{
		{"at its place", "server: " + server.URL() + "\nnamespace: filed\n", nil, nil, exitOK, "of namespace filed"},
		{"the environment beats it", "server: http://127.0.0.1:1\nnamespace: filed\n", []string{"ROLLCALL_SERVER=" + server.URL()}, nil, exitOK, "of namespace filed"},
		{"a flag beats both", "namespace: filed\n", []string{"ROLLCALL_SERVER=http://127.0.0.1:1"}, []string{"-s", server.URL()}, exitOK, "of namespace filed"},
		{"named by a flag", "server: http://127.0.0.1:1", nil, []string{"--client-config", other}, exitOK, "of namespace other"},
		{"named by the environment", "", []string{"ROLLCALL_CLIENT_CONFIG=" + other}, nil, exitOK, "of namespace other"},
		{"in another folder", "", []string{"XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}, []string{"-s", server.URL()}, exitOK, "of namespace public"},
		{"a list", "server: [127.0.0.1:1, \"" + server.URL() + "\"]", nil, nil, exitOK, "of namespace public"},
		{"a list in the environment", "", []string{"ROLLCALL_SERVER=127.0.0.1:1," + server.URL()}, nil, exitOK, "of namespace public"},
		{"empty", "", nil, []string{"-s", server.URL()}, exitOK, "of namespace public"},
		{"unknown key", "sever: x", nil, nil, exitUsage, "there is no setting sever"},
		{"no YAML", "{", nil, nil, exitUsage, "client-config: "},
		{"not there", "", nil, []string{"--client-config", other + ".no"}, exitUsage, "client-config: "},
	} {
		writeFile(t, file, []byte(tt.content))
		got := run(t, Process{Environ: append(tt.environ, "HOME="+home)}, append([]string{"services"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: %+v, want code %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	do := func(args ...string) {
		t.Helper()
		if got := run(t, Process{}, append(args, "-s", server.URL())...); got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	do("register", "orders", "10.0.0.1:80", "--persistent")
	for _, protocol := range []string{"http", "auto"} {
		plain := start(t, "watch", "orders", "--via", protocol, "-s", server.URL())
		asJSON := start(t, "watch", "orders", "--json", "--via", protocol, "-s", server.URL())
		plain.waitFor("10.0.0.1:80")
		asJSON.waitFor("10.0.0.1")
		do("register", "orders", "10.0.0.2:80", "--persistent")
		plain.waitFor("10.0.0.2:80")
		do("deregister", "orders", "10.0.0.2:80", "--persistent")
		plain.waitFor("Z  -  10.0.0.2:80")
		asJSON.waitFor(`"removed":[{`)
		got := plain.interrupt()
		if got.code != exitOK || got.stderr != "" || strings.Count(got.stdout, "TIME") != 1 {
			t.Errorf("%s: %+v", protocol, got)
		}
		got = asJSON.interrupt()
		for line := range strings.Lines(got.stdout) {
			var change instanceChange
			if err := json.Unmarshal([]byte(line), &change); err != nil || change.Time == 0 {
				t.Errorf("%s: %q: %v", protocol, line, err)
			}
		}
	}
}

// TestWatchFits: on a terminal of 80 columns no row is wrapped, and what is not as usual is
// among the remarks.
func TestWatchFits(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	if got := run(t, Process{}, "register", "orders", "255.255.255.255:65535", "--persistent", "--cluster", "east",
		"--metadata", "zone=somewhere-very-far-away", "-s", server.URL()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	l := startWith(t, []string{"COLUMNS=80"}, "watch", "orders", "-s", server.URL())
	l.waitFor("255.255.255.255:65535")
	got := l.interrupt()
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "UTC") || !strings.Contains(got.stdout, "cluster") {
		t.Errorf("got %+v", got)
	}
	for line := range strings.Lines(got.stdout) {
		if n := columnsOf(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestWatchServices(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	if got := run(t, Process{}, "register", "shop@@orders", "10.0.0.1:80", "--persistent", "-s", server.URL()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	l := start(t, "watch", "--group", "shop", "-s", server.URL(), "--via", "http")
	l.waitFor("shop@@orders")
	if got := l.interrupt(); got.code != exitOK || !strings.HasPrefix(got.stdout, "TIME") {
		t.Errorf("got %+v", got)
	}
}
