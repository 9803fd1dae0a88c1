package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// interval is how often the files are looked at. They are read, not only looked
// up, because some tools replace the link to their folder.
const interval = 30 * time.Second

// Files is a certificate with its files. Create it with [Load].
type Files struct {
	cfg     Config
	log     *slog.Logger
	current atomic.Pointer[material]

	mu sync.Mutex
	// tried is what was last read: the sum of the files, or why they could not be
	// read. What has failed once is not tried, and told of, again and again.
	tried string
}

// material is what was in the files.
type material struct {
	sum      string // of the files
	tls      *tls.Config
	names    []string
	notAfter time.Time
}

// Load reads the files that cfg names, which must be valid and enabled. A
// certificate that has expired is taken, with a warning: the rest of the server is
// worth starting.
func Load(cfg Config, logger *slog.Logger) (*Files, error) {
	f := &Files{cfg: cfg, log: logger.With("component", "certs")}
	content, err := f.read()
	if err != nil {
		return nil, err
	}
	m, err := content.parse()
	if err != nil {
		return nil, err
	}
	f.tried = m.sum
	f.current.Store(m)
	if m.expired(time.Now()) {
		f.log.Warn("certificate has expired", "names", m.names, "not_after", m.notAfter)
	}
	return f, nil
}

// TLS returns settings by which each handshake uses the present certificate. The
// caller may change what it likes but GetConfigForClient.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current.Load().tls, nil },
	}
}

// NotAfter is when the present certificate ends.
func (f *Files) NotAfter() time.Time { return f.current.Load().notAfter }

// Reload reads the files now. New handshakes use what it finds; connections that
// are there stay as they are. With a fault in any file, or a certificate that has
// expired, all stays as it is and the log says why.
func (f *Files) Reload() { f.look(true) }

// Run reads the files every half a minute, as [Files.Reload] does, until ctx ends;
// then it returns nil. It tells of a fault once.
func (f *Files) Run(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.look(false)
		}
	}
}

// look takes over what is new in the files. again: also what failed before.
func (f *Files) look(again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, err := f.read()
	found := content.sum()
	if err != nil {
		found = err.Error()
	}
	known := found == f.tried && !again || found == f.current.Load().sum
	f.tried = found
	if known {
		return
	}
	var next *material
	if err == nil {
		next, err = content.parse()
	}
	if err == nil && next.expired(time.Now()) {
		err = fmt.Errorf("%s: the certificate has expired on %s", f.cfg.Cert, next.notAfter.Format(time.RFC3339))
	}
	if err != nil {
		f.log.Error("certificate not reloaded, the old one stays", "err", err)
		return
	}
	f.current.Store(next)
	f.log.Info("certificate reloaded", "names", next.names, "not_after", next.notAfter)
}

// content is what the files hold.
type content struct {
	cfg           Config
	cert, key, ca []byte
}

func (f *Files) read() (c content, err error) {
	c.cfg = f.cfg
	if c.cert, err = os.ReadFile(f.cfg.Cert); err != nil {
		return c, fmt.Errorf("tls.cert: %w", err)
	}
	if c.key, err = os.ReadFile(f.cfg.Key); err != nil {
		return c, fmt.Errorf("tls.key: %w", err)
	}
	if f.cfg.ClientCA == "" {
		return c, nil
	}
	if c.ca, err = os.ReadFile(f.cfg.ClientCA); err != nil {
		return c, fmt.Errorf("tls.client-ca: %w", err)
	}
	return c, nil
}

// sum tells contents apart.
func (c *content) sum() string {
	h := sha256.New()
	for _, part := range [][]byte{c.cert, c.key, c.ca} {
		one := sha256.Sum256(part)
		h.Write(one[:])
	}
	return string(h.Sum(nil))
}

func (c *content) parse() (*material, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert: %s with the key %s: %w", c.cfg.Cert, c.cfg.Key, err)
	}
	m := &material{
		sum: c.sum(), names: pair.Leaf.DNSNames, notAfter: pair.Leaf.NotAfter,
		tls: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	for _, ip := range pair.Leaf.IPAddresses {
		m.names = append(m.names, ip.String())
	}
	if c.cfg.ClientCA == "" {
		return m, nil
	}
	m.tls.ClientAuth, m.tls.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !m.tls.ClientCAs.AppendCertsFromPEM(c.ca) {
		return nil, fmt.Errorf("tls.client-ca: %s: %w", c.cfg.ClientCA, errors.New("it holds no certificate in PEM"))
	}
	return m, nil
}

func (m *material) expired(now time.Time) bool { return now.After(m.notAfter) }
