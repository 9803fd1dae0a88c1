package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

func TestServerURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.1:8849": "http://10.0.0.1:8849", "registry": "http://registry:8848", "::1": "http://[::1]:8848",
		"[::1]": "http://[::1]:8848", "[::1]:80": "http://[::1]:80", "https://registry": "https://registry:443",
		"http://registry/": "http://registry:80", "http://registry:1/base/": "http://registry:1/base",
		"http://registry:1/nacos": "http://registry:1", "http://registry:1/nacos/": "http://registry:1", "registry/nacos": "http://registry:8848",
		"http://registry:1/base/nacos": "http://registry:1/base", "127.0.0.1:99999": "", "127.0.0.1:0": "", "http://h:99999": "",
		"ftp://registry": "", "http://": "", ":8848": "", "http://user:pw@registry": "", "http://registry?x=1": "", "a b": "",
	} {
		u, err := serverURL(text)
		if (err != nil) != (want == "") || err == nil && u.String() != want {
			t.Errorf("%q: got %v, %v, want %q", text, u, err, want)
		}
	}
	for text, want := range map[string]string{
		"a,b:1": "http://a:8848 http://b:1", " a , b,": "http://a:8848 http://b:8848",
		"a/nacos,b": "http://a:8848 http://b:8848", "": "", ",": "", "http://a,https://a": "", "http://a/x,http://b/y": "", "a,ftp://b": "",
	} {
		var list []string
		servers, err := parseServers(text)
		for _, u := range servers {
			list = append(list, u.String())
		}
		if (err != nil) != (want == "") || strings.Join(list, " ") != want {
			t.Errorf("%q: got %v, %v, want %q", text, list, err, want)
		}
	}
}

// TestSeveralServers: a command asks the first server that answers, and when none does it
// names each with its reason.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	up := servertest.New(t).URL()
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "server is STARTING now, please try again later!", http.StatusServiceUnavailable)
	}))
	t.Cleanup(starting.Close)
	const dead, other = "127.0.0.1:1", "127.0.0.1:2"
	none := "rollcall: none of 2 servers can be asked:\n  nothing listens at http://" + dead + "\n  nothing listens at http://" + other + "\n"
	for _, tt := range []struct {
		args []string
		code int
		want string // of both outputs
	}{
		{[]string{"register", "orders", "10.0.0.7:80", "--persistent", "-s", dead + "," + up}, exitOK, "registered"},
		{[]string{"services", "-s", dead, "-s", up}, exitOK, "orders"},
		{[]string{"services", "-s", dead, "-s", up, "--via", "grpc"}, exitOK, "orders"},
		{[]string{"list", "-s", starting.URL + "," + up}, exitOK, "orders"},
		{[]string{"list", "-s", up + "/nacos"}, exitOK, "orders"},
		{[]string{"services", "-s", up + "/nacos"}, exitOK, "orders"},
		{[]string{"ready", "-s", up + "/nacos/"}, exitOK, "is ready"},
		{[]string{"history", "-s", up + "/nacos"}, exitOK, "orders"},
		{[]string{"list", "-s", "127.0.0.1:99999"}, exitUsage, "99999 is no port"},
		{[]string{"ready", "-s", starting.URL + "," + up}, exitOK, up + " is ready"},
		{[]string{"drain", "orders", "10.0.0.7:80", "--weight", "2", "-s", dead + "," + up}, exitOK, "reweighed"},
		{[]string{"list", "-s", dead + "," + other}, exitFailed, none},
		{[]string{"services", "-s", dead + "," + other}, exitFailed, none},
		{[]string{"watch", "orders", "-s", dead + "," + other}, exitFailed, none},
		{[]string{"register", "orders", "10.0.0.7:80", "--beat", "-s", dead + "," + other}, exitFailed, none},
		{[]string{"ready", "-s", dead + "," + starting.URL}, exitFailed, "503 Service Unavailable: server is STARTING now"},
		{[]string{"restore", "-", "-s", dead + "," + up}, exitUsage, "a restore is for one server"},
	} {
		got := run(t, Process{}, tt.args...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%v: %+v, want code %d and %q", tt.args, got, tt.code, tt.want)
		}
	}
}

// TestLastingCommandsMove: a command that lasts goes on with another server.
func TestLastingCommandsMove(t *testing.T) {
	t.Parallel()
	up := servertest.New(t).URL()
	for _, protocol := range []string{"auto", "grpc", "http"} {
		l := start(t, "watch", "orders", "--via", protocol, "-s", "127.0.0.1:1,"+up)
		l.waitFor("orders has no instances")
		if got := l.interrupt(); got.code != exitOK || got.stderr != "" {
			t.Errorf("%s: %+v", protocol, got)
		}
	}
}

// TestOtherServer: what is no registry is named so by all commands that clients could give.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for _, command := range []string{"services", "services --via auto", "instances orders", "watch orders", "register orders 10.0.0.7:80 --beat"} {
		got := run(t, Process{}, append(strings.Fields(command), "-s", other.URL)...)
		if want := "rollcall: " + other.URL + " speaks no protocol of Nacos ("; got.code != exitFailed || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("%s: %+v, want code %d and %q", command, got, exitFailed, want)
		}
	}
}

// TestSilentServer: a server that takes connections and never answers costs as long as was
// said, and is passed over for another.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	up := servertest.New(t).URL()
	for _, tt := range []struct {
		command string
		code    int
		want    string // of both outputs
	}{
		{"list -s " + silent.URL, exitFailed, silent.URL + " does not answer in time"},
		{"services -s " + silent.URL, exitFailed, "wait longer with --timeout"},
		{"watch orders -s " + silent.URL, exitFailed, "wait longer with --timeout"},
		{"list -s " + silent.URL + "," + up, exitOK, "there are no services"},
		{"services -s " + silent.URL + "," + up, exitOK, "there are no services"},
	} {
		got := run(t, Process{}, append(strings.Fields(tt.command), "--timeout", "200ms")...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: %+v, want code %d and %q", tt.command, got, tt.code, tt.want)
		}
	}
}
