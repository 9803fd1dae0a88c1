package consensus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// boltBytes returns a bbolt file with two buckets of which one has n keys.
func boltBytes(tb testing.TB, n int) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "test.db")
	db, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		tb.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for bucket, keys := range map[string]int{"many": n, "few": min(n, 3)} {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil {
				return err
			}
			for i := range keys {
				value := bytes.Repeat([]byte{byte(i)}, (i%900)*(i%7)) // some longer than a page
				if err := b.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	raw, readErr := os.ReadFile(path)
	if err != nil || readErr != nil {
		tb.Fatal(err, readErr)
	}
	return raw
}

// walkBytes counts the keys of each bucket of a bbolt file.
func walkBytes(raw []byte) (map[string]int, error) {
	f, err := openBoltFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	count := func(bucket string) func(key, value []byte) error {
		return func(key, value []byte) error {
			i := counts[bucket]
			counts[bucket]++
			if len(key) != 8 || binary.BigEndian.Uint64(key) != uint64(i) || len(value) != (i%900)*(i%7) {
				return fmt.Errorf("key %x with %d bytes is number %d", key, len(value), i)
			}
			return nil
		}
	}
	err = f.walk(map[string]func(key, value []byte) error{"many": count("many"), "few": count("few")})
	return counts, err
}

func TestBoltFileReadsWhatBboltWrote(t *testing.T) {
	for _, n := range []int{0, 1, 50, 5000} { // inline buckets, one page, three levels
		counts, err := walkBytes(boltBytes(t, n))
		if err != nil || counts["many"] != n || counts["few"] != min(n, 3) {
			t.Errorf("%d keys: %v, %v", n, counts, err)
		}
	}
}

// FuzzBoltFile changes bytes of a file, with the headers' checksums made right
// again, and walks it: it must end without a panic.
func FuzzBoltFile(f *testing.F) {
	raw := boltBytes(f, 300)
	f.Add(uint(16+16), uint64(3), uint(4*4096+8), uint64(1))
	f.Add(uint(16+8), uint64(0), uint(5*4096+12), uint64(1<<31))
	f.Add(uint(4096+16+40), uint64(1<<63), uint(0), uint64(0))
	f.Fuzz(func(_ *testing.T, at1 uint, value1 uint64, at2 uint, value2 uint64) {
		b := bytes.Clone(raw)
		for at, value := range map[uint]uint64{at1: value1, at2: value2} {
			binary.NativeEndian.PutUint64(b[at%uint(len(b)-8):], value)
		}
		for page := range 2 {
			meta := b[page*os.Getpagesize()+boltPageHeader:]
			sum := fnv.New64a()
			sum.Write(meta[:boltMeta])
			binary.NativeEndian.PutUint64(meta[boltMeta:], sum.Sum64())
		}
		_, _ = walkBytes(b)
	})
}
