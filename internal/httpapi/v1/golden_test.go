package v1

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rollcall-registry/rollcall/test/golden"
)

const recordings = "../../../test/golden/testdata"

// TestRecordings replays the recordings of Nacos 1.4.8.
func TestRecordings(t *testing.T) {
	golden.Replay(t, newTestServer(t).url, recorded(t, "v1-1.4.8"), golden.Options{
		Except: exceptions(t), SkipSlow: true,
	})
}

// TestSerialRecordings replays those that change the settings of the server, one
// after the other, each on a server of its own.
func TestSerialRecordings(t *testing.T) {
	all := recorded(t, "v1-1.4.8-serial")
	for name, file := range all {
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			golden.Replay(t, newTestServer(t).url, fstest.MapFS{name: file}, golden.Options{
				Except: exceptions(t), SkipSlow: true,
			})
		})
	}
}

func exceptions(t *testing.T) map[string]string {
	t.Helper()
	reasons, err := os.ReadFile(recordings + "/except.txt")
	if err != nil {
		t.Fatal(err)
	}
	return golden.Exceptions(string(reasons))
}

// recorded returns the recordings of a folder, without those of the calls that
// package legacy serves.
func recorded(t *testing.T, folder string) fstest.MapFS {
	t.Helper()
	root := os.DirFS(path.Join(recordings, folder))
	names, err := fs.Glob(root, "*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings in %s: %v", folder, err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		if strings.HasPrefix(name, "legacy-") && name != "legacy-twins.json" {
			continue
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	return files
}
