package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// exceptions are the recorded cases in which we differ on purpose.
func exceptions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "except.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return Exceptions(string(text))
}

func TestV1(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/v1-1.4.8"), Options{Except: exceptions(t), SkipSlow: testing.Short()})
}

// TestV1Serial has a server of its own: its cases change switches, and put back
// what they change.
func TestV1Serial(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/v1-1.4.8-serial"), Options{Except: exceptions(t), Serial: true, SkipSlow: testing.Short()})
}

func TestLegacy(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/legacy-0.9.0"), Options{Except: exceptions(t), SkipSlow: testing.Short()})
}

func TestV2(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/v2-2.5.1"), Options{Except: exceptions(t), SkipSlow: testing.Short()})
}

func TestV3(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/v3-3.0.3"), Options{Except: exceptions(t), SkipSlow: testing.Short()})
}

func TestV3Console(t *testing.T) {
	t.Parallel()
	Replay(t, servertest.New(t).URL(), os.DirFS("testdata/v3-console-3.0.3"), Options{Except: exceptions(t), SkipSlow: testing.Short()})
}
