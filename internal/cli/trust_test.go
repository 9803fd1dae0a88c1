package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
)

func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), certstest.NewAuthority(t)
	certFile, keyFile := authority.Issue(t, 1, time.Now().Add(time.Hour)).Write(t, dir)
	caFile := certstest.WriteFile(t, filepath.Join(dir, "ca.pem"), authority.PEM())
	s := startServe(t, Process{}, "--tls-cert", certFile, "--tls-key", keyFile)
	ready := s.stderr.waitFor(t, `(?m)^ready http=(127\.0\.0\.1:\d+) https=(127\.0\.0\.1:\d+) grpc=\S+ udp=`)
	if ready[1] != ready[2] {
		t.Errorf("http on %s, https on %s, want one port", ready[1], ready[2])
	}
	secure := "https://" + ready[2]
	for _, tt := range []struct {
		name    string
		environ []string
		args    []string
		code    int
		want    string // of both outputs
	}{
		{"clear text", nil, []string{"-s", ready[1]}, exitOK, "is ready"},
		{"https", nil, []string{"-s", secure, "--ca-file", caFile}, exitOK, secure + " is ready"},
		{"environment", []string{"ROLLCALL_CA_FILE=" + caFile, "ROLLCALL_SERVER=" + secure}, nil, exitOK, "is ready"},
		{"name", nil, []string{"-s", secure, "--ca-file", caFile, "--server-name", "localhost"}, exitOK, "is ready"},
		{"unknown authority", nil, []string{"-s", secure}, exitFailed, "name its authority with --ca-file"},
		{"another name", nil, []string{"-s", secure, "--ca-file", caFile, "--server-name", "registry.test"}, exitFailed, "give that with --server-name"},
		{"no file", nil, []string{"-s", secure, "--ca-file", caFile + ".no"}, exitUsage, "ca-file: "},
		{"no certificate", nil, []string{"-s", secure, "--ca-file", keyFile}, exitUsage, "holds no certificate in PEM"},
		{"half a pair", nil, []string{"-s", secure, "--cert-file", certFile}, exitUsage, "give both or none"},
		{"bad pair", nil, []string{"-s", secure, "--cert-file", caFile, "--key-file", keyFile}, exitUsage, "cert-file: "},
	} {
		got := run(t, Process{Environ: tt.environ}, append([]string{"ready"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: got %+v, want code %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
	authority.Issue(t, 2, time.Now().Add(time.Hour)).Write(t, dir)
	s.signals <- syscall.SIGHUP
	s.stderr.waitFor(t, `msg="certificate reloaded".*localhost`)
	certstest.WriteFile(t, keyFile, nil)
	s.signals <- syscall.SIGHUP
	s.stderr.waitFor(t, `level=ERROR msg="certificate not reloaded, the old one stays"`)
	if got := run(t, Process{}, "list", "-s", secure, "--ca-file", caFile); got.code != exitOK {
		t.Errorf("with the certificate of before: %+v", got)
	}
}

func TestServeTLSOnly(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), certstest.NewAuthority(t)
	certFile, keyFile := authority.Issue(t, 1, time.Now().Add(time.Hour)).Write(t, dir)
	caFile := certstest.WriteFile(t, filepath.Join(dir, "ca.pem"), authority.PEM())
	s := startServe(t, Process{Environ: []string{
		"ROLLCALL_TLS_CERT=" + certFile, "ROLLCALL_TLS_KEY=" + keyFile, "ROLLCALL_TLS_CLIENT_CA=" + caFile,
		"ROLLCALL_CA_FILE=" + caFile, "ROLLCALL_CERT_FILE=" + certFile,
	}})
	address := s.stderr.waitFor(t, `(?m)^ready https=(127\.0\.0\.1:\d+) grpc=`)[1]
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"clear text", []string{"-s", address}, exitFailed, "this port speaks TLS only: use https"},
		{"no certificate", []string{"-s", "https://" + address, "--ca-file", caFile}, exitFailed, "see --cert-file"},
		{"certificate", []string{"-s", "https://" + address, "--ca-file", caFile, "--cert-file", certFile, "--key-file", keyFile}, exitOK, "is ready"},
	} {
		got := run(t, Process{}, append([]string{"ready"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: got %+v, want code %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
	if log := s.stderr.String(); strings.Contains(log, "are no settings") {
		t.Errorf("variables of commands are taken for settings:\n%s", log)
	}
}

func TestNotTLS(t *testing.T) {
	t.Parallel()
	s := startServe(t, Process{})
	address := s.stderr.waitFor(t, `ready http=(\S+)`)[1]
	if got := run(t, Process{}, "ready", "-s", "https://"+address); got.code != exitFailed || !strings.Contains(got.stderr, "ask with http://") {
		t.Errorf("got %+v", got)
	}
}
