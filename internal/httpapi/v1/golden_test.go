package v1

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rollcall-registry/rollcall/test/golden"
)

const recordings = "../../../test/golden/testdata"

// TestRecordings replays the recordings of Nacos 1.4.8 that ask for instances and
// nothing else.
func TestRecordings(t *testing.T) {
	reasons, err := os.ReadFile(recordings + "/except.txt")
	if err != nil {
		t.Fatal(err)
	}
	golden.Replay(t, newTestServer(t).url, instanceCases(t), golden.Options{
		Except: golden.Exceptions(string(reasons)), SkipSlow: true,
	})
}

// instanceCases returns the recordings whose every step is a call of this
// package's instance routes or of an unknown path.
func instanceCases(t *testing.T) fs.FS {
	t.Helper()
	root := os.DirFS(recordings + "/v1-1.4.8")
	names, err := fs.Glob(root, "*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	chosen := fstest.MapFS{}
	for _, name := range names {
		data, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Steps []struct{ Path string } }
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		foreign := func(s struct{ Path string }) bool {
			path := strings.TrimPrefix(s.Path, "/nacos/v1/ns")
			return path != "/api" && !strings.HasPrefix(path, "/instance") &&
				!slices.Contains([]string{"/api/list", "/api/beat", "/api/statuses"}, path)
		}
		if !slices.ContainsFunc(c.Steps, foreign) {
			chosen[name] = &fstest.MapFile{Data: data}
		}
	}
	return chosen
}
