package legacy

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/rollcall-registry/rollcall/test/golden"
)

const recordings = "../../../test/golden/testdata"

// TestRecordings replays the recordings of Nacos 0.9.0.
func TestRecordings(t *testing.T) {
	golden.Replay(t, newTestServer(t).url, os.DirFS(recordings+"/legacy-0.9.0"), golden.Options{SkipSlow: testing.Short()})
}

// TestLaterRecordings replays those of Nacos 1.4.8 that use paths of 0.9 and in
// which we do not differ on purpose.
func TestLaterRecordings(t *testing.T) {
	cases := fstest.MapFS{}
	for _, name := range []string{"legacy-alldomnames.json", "legacy-srvipxt-udp.json", "legacy-twins.json"} {
		data, err := fs.ReadFile(os.DirFS(recordings), "v1-1.4.8/"+name)
		if err != nil {
			t.Fatal(err)
		}
		cases[name] = &fstest.MapFile{Data: data}
	}
	golden.Replay(t, newTestServer(t).url, cases, golden.Options{})
}
