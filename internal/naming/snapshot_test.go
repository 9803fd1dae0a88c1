package naming

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

type noSink struct{}

func (noSink) Emit(*registry.Event) {}

func filledStore(tb testing.TB, instances int) *registry.Store {
	tb.Helper()
	store := registry.NewStore(registry.DefaultConfig(), noSink{})
	for n := range instances {
		_, err := store.Apply(&registry.Register{
			Service: registry.ServiceKey{Namespace: "public", Group: "g", Name: fmt.Sprint("s", n/10)},
			Owner:   registry.Owner{Kind: registry.OwnerDurable},
			Instance: registry.Instance{
				IP: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), Port: 80, Cluster: "DEFAULT", Weight: 1,
				Healthy: true, Enabled: true,
				Metadata: registry.NewMetadata(map[string]string{"zone": "a", "version": "1", "n": fmt.Sprint(n)}),
			},
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return store
}

func encoded(tb testing.TB, store *registry.Store) []byte {
	tb.Helper()
	var buf bytes.Buffer
	if err := store.Durable()(&buf); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

// What is read in parts is what was written, in its order.
func TestReadSnapshot(t *testing.T) {
	for _, instances := range []int{0, 1, 10, 20_000} {
		data := encoded(t, filledStore(t, instances))
		snap, err := ReadSnapshot(iotest.HalfReader(bytes.NewReader(data)))
		if err != nil {
			t.Fatalf("%d instances: %v", instances, err)
		}
		back := registry.NewStore(registry.DefaultConfig(), noSink{})
		back.Install(snap, registry.Meta{})
		if got := back.Counts(); got.Persistent != int64(instances) {
			t.Errorf("got %d instances back, want %d", got.Persistent, instances)
		}
	}
}

func TestReadSnapshotRefuses(t *testing.T) {
	good := string(encoded(t, filledStore(t, 20_000)))
	cut := good[:len(good)-10]
	changed := strings.Replace(good, `"instance":{`, `"instance":[`, 1)
	broken := errors.New("the disk is gone")
	for name, r := range map[string]io.Reader{
		"cut":     strings.NewReader(cut),
		"changed": strings.NewReader(changed),
		"broken":  io.MultiReader(strings.NewReader(good[:snapshotPart+10]), iotest.ErrReader(broken)),
	} {
		if _, err := ReadSnapshot(r); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func BenchmarkReadSnapshot(b *testing.B) {
	data := encoded(b, filledStore(b, 20_000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ReadSnapshot(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
