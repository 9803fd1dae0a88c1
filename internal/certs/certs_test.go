package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/certs/certstest"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string // in the fault; none when empty
	}{
		{Config{}, ""},
		{Config{Cert: "c", Key: "k"}, ""},
		{Config{Cert: "c", Key: "k", ClientCA: "a"}, ""},
		{Config{Cert: "c"}, "tls.key: "},
		{Config{Key: "k"}, "tls.cert: "},
		{Config{ClientCA: "a"}, "tls.client-ca: "},
	} {
		err := tt.cfg.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%+v: got %v, want %q", tt.cfg, err, tt.want)
		}
	}
}

// rig is a certificate in files of its own.
type rig struct {
	*Files
	authority *certstest.Authority
	dir       string
	log       bytes.Buffer // belongs to the one goroutine that reloads
}

func (r *rig) config() Config {
	return Config{Cert: filepath.Join(r.dir, "cert.pem"), Key: filepath.Join(r.dir, "key.pem")}
}

// write writes a certificate with a serial number that ends at some time.
func (r *rig) write(t *testing.T, serial int64, notAfter time.Time) {
	t.Helper()
	r.authority.Issue(t, serial, notAfter).Write(t, r.dir)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{authority: certstest.NewAuthority(t), dir: t.TempDir()}
	r.write(t, 1, soon())
	var err error
	if r.Files, err = Load(r.config(), slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
		t.Fatal(err)
	}
	return r
}

func soon() time.Time { return time.Now().Add(time.Hour) }

// served returns the serial number of the certificate that a client would see.
func (r *rig) served(t *testing.T) int64 {
	t.Helper()
	present, err := r.TLS().GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	return present.Certificates[0].Leaf.SerialNumber.Int64()
}

// told checks what has been logged since the last time.
func (r *rig) told(t *testing.T, lines int, what string) {
	t.Helper()
	got := r.log.String()
	r.log.Reset()
	if n := strings.Count(got, "\n"); n != lines || !strings.Contains(got, what) {
		t.Errorf("logged %q, want %d lines with %q", got, lines, what)
	}
}

func TestReload(t *testing.T) {
	r := newRig(t)
	r.told(t, 0, "")
	r.Reload()
	r.told(t, 0, "")
	r.write(t, 2, soon())
	r.Reload()
	r.told(t, 1, `level=INFO msg="certificate reloaded"`)
	if got := r.served(t); got != 2 {
		t.Errorf("certificate %d, want 2", got)
	}
}

// Whatever is wrong with new files, the old certificate stays.
func TestFaultyFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, r *rig)
		want  string
	}{
		"no PEM": {func(t *testing.T, r *rig) { certstest.WriteFile(t, r.config().Cert, []byte("nonsense")) }, "cert.pem"},
		"empty":  {func(t *testing.T, r *rig) { certstest.WriteFile(t, r.config().Cert, nil) }, "cert.pem"},
		"another's key": {func(t *testing.T, r *rig) {
			key := r.authority.Issue(t, 2, soon()).Key
			certstest.WriteFile(t, r.config().Key, key)
		}, "key.pem"},
		"no key":            {func(t *testing.T, r *rig) { remove(t, r.config().Key) }, "tls.key: "},
		"no certificate":    {func(t *testing.T, r *rig) { remove(t, r.config().Cert) }, "tls.cert: "},
		"it is out of date": {func(t *testing.T, r *rig) { r.write(t, 2, time.Now().Add(-time.Minute)) }, "has expired on"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			tt.spoil(t, r)
			r.look(false)
			r.told(t, 1, `level=ERROR msg="certificate not reloaded, the old one stays"`)
			r.look(false)
			r.told(t, 0, "") // once is enough
			r.Reload()
			r.told(t, 1, tt.want) // but who asks is answered
			if got := r.served(t); got != 1 {
				t.Errorf("certificate %d, want 1", got)
			}
			r.write(t, 3, soon())
			r.look(false)
			r.told(t, 1, "certificate reloaded")
			if got := r.served(t); got != 3 {
				t.Errorf("mended: certificate %d, want 3", got)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestLoadFails(t *testing.T) {
	good := newRig(t).config()
	for name, cfg := range map[string]Config{
		"no file":   {Cert: good.Cert + ".no", Key: good.Key},
		"not a key": {Cert: good.Cert, Key: good.Cert},
		"client CA": {Cert: good.Cert, Key: good.Key, ClientCA: good.Key},
	} {
		if _, err := Load(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), "tls.") {
			t.Errorf("%s: got %v, want a fault of a setting", name, err)
		}
	}
}

// A server whose certificate has expired starts, and says so.
func TestExpiredAtTheStart(t *testing.T) {
	r := newRig(t)
	r.write(t, 2, time.Now().Add(-time.Minute))
	f, err := Load(r.config(), slog.New(slog.NewTextHandler(&r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.told(t, 1, "level=WARN msg=\"certificate has expired\"")
	if f.NotAfter().After(time.Now()) {
		t.Errorf("it ends on %v", f.NotAfter())
	}
}

// Files are looked at by themselves, also when a link to their folder is replaced.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		folders := [2]string{filepath.Join(r.dir, "a"), filepath.Join(r.dir, "b")}
		for i, folder := range folders {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			r.authority.Issue(t, int64(10+i), soon()).Write(t, folder)
		}
		link := filepath.Join(r.dir, "link")
		if err := os.Symlink(folders[0], link); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.Files, err = Load(Config{Cert: filepath.Join(link, "cert.pem"), Key: filepath.Join(link, "key.pem")}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(10 * interval)
		synctest.Wait()
		if got := r.served(t); got != 10 {
			t.Errorf("certificate %d, want 10", got)
		}
		remove(t, link)
		if err := os.Symlink(folders[1], link); err != nil {
			t.Fatal(err)
		}
		time.Sleep(interval)
		synctest.Wait()
		if got := r.served(t); got != 11 {
			t.Errorf("certificate %d, want 11", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// handshake lets a client and a server meet, and returns what the client learns.
// resumed: it came back with a ticket.
func handshake(t *testing.T, server, client *tls.Config) (resumed bool, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		tc := tls.Server(nc, server)
		_, _ = io.WriteString(tc, "x") // and with it a ticket to come back
		_ = tc.Close()
	}()
	tc, err := tls.Dial("tcp", ln.Addr().String(), client)
	if err != nil {
		return false, err
	}
	defer func() { _ = tc.Close() }()
	_, err = io.ReadFull(tc, make([]byte, 1)) // in TLS 1.3 it is known only now
	return tc.ConnectionState().DidResume, err
}

// Clients are held to the authorities of the moment, also those that come back
// with a ticket.
func TestClientCertificates(t *testing.T) {
	r := newRig(t)
	ours, others := certstest.NewAuthority(t), certstest.NewAuthority(t)
	cfg := r.config()
	cfg.ClientCA = certstest.WriteFile(t, filepath.Join(r.dir, "ca.pem"), ours.PEM())
	f, err := Load(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := f.TLS()
	client := func(a *certstest.Authority) *tls.Config {
		c := &tls.Config{RootCAs: r.authority.Pool(), ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		if a != nil {
			c.Certificates = []tls.Certificate{a.Issue(t, 7, soon()).Certificate(t)}
		}
		return c
	}
	mine := client(ours)
	for _, again := range []bool{false, true} {
		if resumed, err := handshake(t, server, mine); err != nil || resumed != again {
			t.Errorf("a client of the authority: resumed %v, %v, want %v", resumed, err, again)
		}
	}
	for name, c := range map[string]*tls.Config{"no certificate": client(nil), "of another authority": client(others)} {
		if _, err := handshake(t, server, c); err == nil {
			t.Errorf("%s: it is let in", name)
		}
	}
	certstest.WriteFile(t, cfg.ClientCA, others.PEM())
	f.Reload()
	if _, err := handshake(t, server, mine); err == nil {
		t.Error("a client of the former authority is let in")
	}
	if _, err := handshake(t, server, client(others)); err != nil {
		t.Errorf("a client of the new authority: %v", err)
	}
}

func TestOldTLS(t *testing.T) {
	r := newRig(t)
	client := &tls.Config{RootCAs: r.authority.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if _, err := handshake(t, r.TLS(), client); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	client.MinVersion, client.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := handshake(t, r.TLS(), client); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
}
