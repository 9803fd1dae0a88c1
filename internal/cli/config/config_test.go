package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// sample has a setting of every kind, composed as server.Config is.
type sample struct {
	Listen []string `config:"listen" help:"Where requests are served." value:"host:port"`
	Port   int      `config:"udp-port" help:"The port of pushes."`
	Auth   string   `config:"auth" help:"Whether callers must log in." enum:"on,off" unset:"off on loopback"`
	Check  bool     `config:"check" help:"Checks and ends." bare:"true"`

	Push   pushSample `help:"How changes reach subscribers."`
	Limits limitSample

	Clock func() time.Time `config:"-"`
}

type pushSample struct {
	MinWindow time.Duration  `config:"push.min-window" help:"Shortest merging." reload:"true"`
	Gzip      bool           `config:"push.gzip" help:"Whether large packets are compressed." reload:"true"`
	Ranges    []netip.Prefix `config:"push.ranges" help:"Addresses that may be pushed to."`
}

type limitSample struct {
	Metadata int64   `config:"limits.metadata" help:"Largest metadata." unit:"bytes"`
	Total    int64   `config:"limits.total" help:"Most instances."`
	Share    float64 `config:"limits.share" help:"Share of memory."`
}

func (s sample) Validate() error {
	if s.Push.MinWindow < 0 {
		return fmt.Errorf("push.min-window: %v is below 0; give 0 or more", s.Push.MinWindow)
	}
	return nil
}

func defaults() sample {
	return sample{
		Listen: []string{"127.0.0.1:8848"},
		Push:   pushSample{MinWindow: 10 * time.Millisecond, Gzip: true},
		Limits: limitSample{Metadata: 64 << 10, Total: 1000, Share: 0.5},
	}
}

func sampleSchema(t *testing.T) *Schema[sample] {
	t.Helper()
	s, err := New(defaults())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sources parses args as flags and writes yaml to a file.
func sources(t *testing.T, s *Schema[sample], args, environ []string, yaml string) Sources {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.AddFlags(flags)
	flags.String("other", "", "a flag that is no setting")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	src := Sources{Flags: flags, Environ: environ}
	if yaml != "" {
		src.File = filepath.Join(t.TempDir(), "rollcall.yaml")
		if err := os.WriteFile(src.File, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return src
}

func TestLoad(t *testing.T) {
	tests := []struct {
		name    string
		args    []string
		environ []string
		yaml    string
		change  func(*sample)
	}{
		{name: "defaults", change: func(*sample) {}},
		{
			name:   "every kind by flag",
			args:   []string{"--listen", ":1", "--listen=:2,[::1]:3", "--udp-port", "7", "--auth", "off", "--check", "--push-min-window=1h30m", "--push-gzip", "off", "--push-ranges", "10.1.2.3/8,fd00::1", "--limits-metadata", "8MiB", "--limits-total=-5", "--limits-share", "1e-3", "--other=x"},
			change: everyKind,
		},
		{
			name:    "every kind by environment",
			environ: []string{"ROLLCALL_LISTEN=:1, :2,[::1]:3", "ROLLCALL_UDP_PORT=7", "ROLLCALL_AUTH=off", "ROLLCALL_CHECK=true", "ROLLCALL_PUSH_MIN_WINDOW=90m", "ROLLCALL_PUSH_GZIP=no", "ROLLCALL_PUSH_RANGES=10.0.0.0/8,fd00::1/128", "ROLLCALL_LIMITS_METADATA=8192 kib", "ROLLCALL_LIMITS_TOTAL=-5", "ROLLCALL_LIMITS_SHARE=.001", "PATH=/bin"},
			change:  everyKind,
		},
		{
			name:   "every kind by file",
			yaml:   "listen: [':1', ':2', '[::1]:3']\nudp-port: 7\nauth: off\ncheck: true\npush:\n  min-window: 1h30m\n  gzip: false\n  ranges:\n  - 10.0.0.0/8\n  - fd00::1\nlimits:\n  metadata: 8388608\n  total: -5\n  share: 0.001\n",
			change: everyKind,
		},
		{
			name:   "dotted keys in the file",
			yaml:   "push.min-window: 5s\nlisten: ':1,:2'\n",
			change: func(c *sample) { c.Push.MinWindow = 5 * time.Second; c.Listen = []string{":1", ":2"} },
		},
		{
			name: "flag beats environment beats file",
			args: []string{"--udp-port=3"}, environ: []string{"ROLLCALL_UDP_PORT=2", "ROLLCALL_LIMITS_TOTAL=2"},
			yaml:   "udp-port: 1\nlimits.total: 1\npush: {min-window: 1s}\n",
			change: func(c *sample) { c.Port, c.Limits.Total, c.Push.MinWindow = 3, 2, time.Second },
		},
		{
			name: "a list is replaced, not added to",
			args: []string{"--listen=:3"}, environ: []string{"ROLLCALL_LISTEN=:2"}, yaml: "listen: [':1']",
			change: func(c *sample) { c.Listen = []string{":3"} },
		},
		{name: "an empty variable is absent", environ: []string{"ROLLCALL_UDP_PORT="}, change: func(*sample) {}},
		{name: "the last of a repeated flag counts", args: []string{"--udp-port=1", "--udp-port=2"}, change: func(c *sample) { c.Port = 2 }},
		{name: "an empty file", yaml: "# nothing\n", change: func(*sample) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sampleSchema(t)
			got, err := s.Load(sources(t, s, tt.args, tt.environ, tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			tt.change(&want)
			if !reflect.DeepEqual(got.Config, want) {
				t.Errorf("got  %+v\nwant %+v", got.Config, want)
			}
		})
	}
}

func everyKind(c *sample) {
	c.Listen, c.Port, c.Auth, c.Check = []string{":1", ":2", "[::1]:3"}, 7, "off", true
	c.Push = pushSample{
		MinWindow: 90 * time.Minute,
		Ranges:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")},
	}
	c.Limits = limitSample{Metadata: 8 << 20, Total: -5, Share: 0.001}
}

func TestLoadReportsEveryFault(t *testing.T) {
	s := sampleSchema(t)
	src := sources(
		t, s,
		[]string{"--udp-port=99999999999999999999", "--auth=maybe", "--push-min-window=-5s"},
		[]string{"ROLLCALL_LIMITS_METADATA=-1", "ROLLCALL_LIMITS_SHARE=NaN", "ROLLCALL_CHECK=perhaps"},
		"lissten: x\npush:\n  ranges: [10.0.0.0/8, wide]\n  gzip: [on]\nlimits: 5\nlisten:\n",
	)
	got, err := s.Load(src)
	if err == nil {
		t.Fatal("no fault was reported")
	}
	for _, want := range []string{
		`lissten: "x" (from ` + src.File + `) is no setting; did you mean listen?`,
		`limits: "5" (from ` + src.File + `) is no setting; limits is a section with the keys limits.metadata, limits.total, limits.share`,
		`listen: "" (from ` + src.File + `) is empty; give a value or remove the line`,
		`push.ranges: "[10.0.0.0/8 wide]" (from ` + src.File + `) is not an address range; write one such as 10.0.0.0/8, 10.1.2.3 or fd00::/8`,
		`push.gzip: "[on]" (from ` + src.File + `) takes one value, not a list`,
		`udp-port: "99999999999999999999" (from --udp-port) is not a whole number; write digits only, such as 8848`,
		`auth: "maybe" (from --auth) is not one of its words; write on or off`,
		`limits.metadata: "-1" (from ROLLCALL_LIMITS_METADATA) is not a size; write a whole number with its unit, such as 64KiB, 8MiB or 1GiB`,
		`limits.share: "NaN" (from ROLLCALL_LIMITS_SHARE) is not a number; write one such as 0.5`,
		`check: "perhaps" (from ROLLCALL_CHECK) is neither on nor off; write on or off`,
		`push.min-window: -5s is below 0; give 0 or more`,
	} {
		if !strings.Contains(err.Error()+"\n", want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if n := len(strings.Split(err.Error(), "\n")); n != 11 {
		t.Errorf("%d faults, want 11:\n%v", n, err)
	}
	if got.Config.Limits.Total != 1000 {
		t.Errorf("a setting without fault lost its default: %+v", got.Config)
	}
}

func TestLoadFile(t *testing.T) {
	s := sampleSchema(t)
	for _, tt := range []struct{ name, yaml, want string }{
		{"syntax", "listen: [\n", "yaml: line 1"},
		{"repeated key", "auth: on\nauth: off\n", "already defined"},
		{"not a mapping", "- a\n", "cannot unmarshal"},
		{"nested list", "listen: [[a]]\n", "must be a list of plain values"},
		{"far from any key", "database: {url: x}\n", "rollcall serve --help lists all keys"},
		{"section for a value", "auth: {mode: on}\n", "auth.mode"},
		{"empty section", "auth: {}\n", "takes a value, not a section"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Load(sources(t, s, nil, nil, tt.yaml))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a text with %q", err, tt.want)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	_, err := s.Load(Sources{File: missing})
	if fault := (*Fault)(nil); !errors.As(err, &fault) || fault.Source != missing {
		t.Errorf("got %v, want a fault of %s", err, missing)
	}
}

func TestOriginsAndUnknownEnv(t *testing.T) {
	s := sampleSchema(t)
	src := sources(t, s, []string{"--auth=off"}, []string{
		"ROLLCALL_UDP_PORT=1", "ROLLCALL_LISSTEN=x", "ROLLCALL_SERVICE_HOST=10.0.0.1", "ROLLCALL_PORT_8848_TCP_ADDR=10.0.0.1", "ROLLCALL_PORT=tcp://10.0.0.1:8848",
	}, "push: {gzip: off}")
	got, err := s.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"auth": "--auth", "udp-port": "ROLLCALL_UDP_PORT", "push.gzip": src.File}
	if !reflect.DeepEqual(got.Origins, want) {
		t.Errorf("origins %v, want %v", got.Origins, want)
	}
	if want := []string{"ROLLCALL_LISSTEN"}; !reflect.DeepEqual(got.UnknownEnv, want) {
		t.Errorf("unknown variables %v, want %v", got.UnknownEnv, want)
	}
}

func TestHelpNamesFlagVariableAndKey(t *testing.T) {
	s := sampleSchema(t)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.AddFlags(flags)
	help := flags.FlagUsages()
	for _, n := range s.Settings() {
		for _, want := range []string{"--" + n.Flag, "env " + n.Env + ",", "key " + n.Key, n.Help} {
			if !strings.Contains(help, want) {
				t.Errorf("help lacks %q", want)
			}
		}
	}
	for _, want := range []string{
		"--listen host:port", "May be given more than once.", "key listen, default 127.0.0.1:8848",
		"--auth on|off", "key auth, default off on loopback", "key udp-port, default 0",
		"--check ", "key limits.metadata, default 64KiB", "key push.min-window, default 10ms",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q:\n%s", want, help)
		}
	}
}

func TestReference(t *testing.T) {
	got := sampleSchema(t).Reference()
	for _, want := range []string{
		"## General\n\n### listen\n\nWhere requests are served.\n\n- Value: list of `host:port`\n- Default: `127.0.0.1:8848`\n- Flag: `--listen`\n- Environment: `ROLLCALL_LISTEN`\n\n### udp-port",
		"## `push`\n\nHow changes reach subscribers.\n\n### push.min-window\n",
		"- Environment: `ROLLCALL_PUSH_MIN_WINDOW`\n- Re-read on SIGHUP\n",
		"- Default: none; off on loopback\n",
		"## `limits`\n\n### limits.metadata\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestAdopt(t *testing.T) {
	s := sampleSchema(t)
	next := defaults()
	next.Push.MinWindow, next.Port, next.Listen = time.Second, 9, []string{":1"}
	got, changed, restart := s.Adopt(defaults(), next)
	want := defaults()
	want.Push.MinWindow = time.Second
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if fmt.Sprint(changed, restart) != "[push.min-window] [listen udp-port]" {
		t.Errorf("changed %v, restart %v", changed, restart)
	}
}

func TestNewRefusesMistakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"no tag", schemaError(struct{ A int }{}), "A has no config tag"},
		{"no help", schemaError(struct {
			A int `config:"a"`
		}{}), "a has no help tag"},
		{"bad key", schemaError(struct {
			A int `config:"A_b" help:"x"`
		}{}), `"A_b" is no key`},
		{"same variable", schemaError(struct {
			A int `config:"a.b" help:"x"`
			B int `config:"a-b" help:"x"`
		}{}), "same variable ROLLCALL_A_B"},
		{"key and section", schemaError(struct {
			A int `config:"a" help:"x"`
			B int `config:"a.b.c" help:"x"`
		}{}), "a is also the section of a.b.c"},
		{"type", schemaError(struct {
			A map[string]string `config:"a" help:"x"`
		}{}), "a setting cannot be a map"},
		{"no struct", schemaError(5), "int is not a struct"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("got %v, want a text with %q", tt.err, tt.want)
			}
		})
	}
}

func schemaError[T any](defaults T) error {
	_, err := New(defaults)
	return err
}

func TestFormatInvertsParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1": "1B", "1023": "1023B", "1024": "1KiB", "1 KB": "1000B", "1536KiB": "1536KiB", "2048MiB": "2GiB", "9007199254740991": "9007199254740991B",
	} {
		n, ok := parseSize(text)
		if got := formatSize(n); !ok || got != want {
			t.Errorf("size %q: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "B", "-1", "1.5MiB", "9223372036854775807KiB", "1 MiB MiB", "8m"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("size %q was read as %d", text, n)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m"} {
		if got := formatDuration(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

// FuzzLoadFile feeds any file to Load: it must neither panic nor accept a key
// that is no setting.
func FuzzLoadFile(f *testing.F) {
	for _, seed := range []string{"listen: [a]", "push: {gzip: on}", "a: &a [*a]", "1: 2", "limits: {share: .inf}", "? [a]\n: b"} {
		f.Add([]byte(seed))
	}
	s, err := New(defaults())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, yaml []byte) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, yaml, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _ := s.Load(Sources{File: path})
		for key := range got.Origins {
			if s.byKey[key] == nil {
				t.Errorf("accepted %q", key)
			}
		}
	})
}
