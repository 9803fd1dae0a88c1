package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoreAndLoad(t *testing.T) {
	root := t.TempDir()
	d := Dir(root)
	if _, _, err := d.Load("public", "G", "s"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	if err := d.Store("public", "G", "a b/c", []byte("{\n\"hosts\": []}\n")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "naming", "public", "G%40%40a+b%2Fc") // as Java clients name it
	text, err := os.ReadFile(path)
	if err != nil || strings.ContainsAny(string(text), "\n") {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	raw, at, err := d.Load("public", "G", "a b/c")
	if err != nil || string(raw) != `{ "hosts": []}` || at.IsZero() {
		t.Errorf("got %q, %v, %v", raw, at, err)
	}
	left, _ := filepath.Glob(filepath.Join(root, "naming", "public", ".list-*"))
	if len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestNamesStayBelowTheDirectory(t *testing.T) {
	d := Dir("/cache")
	for _, ns := range []string{"..", ".", "a/../../b", "", "/etc"} {
		if path := d.list(ns, "..", ".."); !strings.HasPrefix(path, "/cache/naming/") || strings.Count(path, "/") > 4 {
			t.Errorf("%q leads to %s", ns, path)
		}
	}
}

func TestNoDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Dir(file).Store("public", "G", "s", []byte("{}")); err == nil {
		t.Error("stored below a file")
	}
	if _, err := Dir(file).Switch("public"); err == nil {
		t.Error("read a switch below a file")
	}
}

func TestSwitch(t *testing.T) {
	tests := map[string]struct {
		path, text string
		on         bool
	}{
		"none":        {"", "", false},
		"old place":   {"failover" + switchName, "1\n", true},
		"new place":   {"failover/" + switchName, "1", true},
		"off":         {"failover/" + switchName, "0\r\n", false},
		"the last":    {"failover/" + switchName, "1\n0\n", false},
		"nonsense":    {"failover/" + switchName, "yes", false},
		"in the text": {"failover/" + switchName, "# switch\n1\n", true},
	}
	for name, test := range tests {
		root := t.TempDir()
		if test.path != "" {
			path := filepath.Join(root, "naming", "public", test.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Dir(root).Switch("public")
		if err != nil || got.On != test.on {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("DEFAULT_GROUP@@orders")
	f.Add("..")
	f.Fuzz(func(t *testing.T, name string) {
		file := encode(name)
		if strings.ContainsAny(file, "/\\\x00") || file == "." || file == ".." {
			t.Errorf("%q becomes %q", name, file)
		}
	})
}
