package grpc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/servertest"
)

// long is how long a transcript may take that is played in short mode too.
const long = 9 * time.Second

func TestRecordings(t *testing.T) {
	except := exceptions(t)
	for _, dir := range []string{"grpc-2.5.1", "grpc-3.0.3"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			scripts, err := Load(filepath.Join("testdata", dir))
			if err != nil || len(scripts) == 0 {
				t.Fatalf("%d recordings, %v", len(scripts), err)
			}
			server := servertest.New(t)
			player := Player{GRPC: server.Addr(), HTTP: server.URL()}
			// Transcripts wait nearly all the time, so they are played all at once. Those
			// that disturb others come after them.
			var playing sync.WaitGroup
			for _, script := range scripts {
				if dir == "grpc-3.0.3" {
					announce(script)
				}
				if !except[script.ID] && !script.Disturbs() {
					playing.Go(func() { play(t, player, script) })
				}
			}
			playing.Wait()
			for _, script := range scripts {
				if !except[script.ID] && script.Disturbs() {
					play(t, player, script)
				}
			}
		})
	}
}

func play(t *testing.T, player Player, script *Transcript) {
	t.Run(script.ID, func(t *testing.T) {
		if !script.Replayable() {
			t.Skip("cannot be played as it stands")
		}
		if testing.Short() && script.Length() > long {
			t.Skip("takes", script.Length())
		}
		for _, difference := range player.Play(t, script) {
			t.Error(difference)
		}
	})
}

// announce makes the client of a recording one of 3.x, and takes the abilities that
// we do not have from what the server says of itself.
func announce(script *Transcript) {
	for _, m := range script.Messages {
		body, _ := m.Body.(map[string]any)
		table, ok := body["abilityTable"].(map[string]any)
		switch {
		case !ok:
		case m.Type == grpcv2.ConnectionSetup:
			body["abilityTable"] = map[string]any{grpcv2.AbilityFuzzyWatch: true}
		case m.Type == grpcv2.SetupAck:
			maps.DeleteFunc(table, func(name string, _ any) bool {
				return name != grpcv2.AbilityPersistent && name != grpcv2.AbilityFuzzyWatch
			})
		}
	}
}

func exceptions(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "except.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			ids[fields[0]] = true
		}
	}
	return ids
}

// TestExceptionsExist holds the list of exceptions to recordings that exist.
func TestExceptionsExist(t *testing.T) {
	var known []string
	for _, dir := range []string{"grpc-2.5.1", "grpc-3.0.3"} {
		scripts, err := Load(filepath.Join("testdata", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			known = append(known, s.ID)
		}
	}
	for id := range exceptions(t) {
		if !slices.Contains(known, id) {
			t.Errorf("%s is excepted and was not recorded", id)
		}
	}
}
