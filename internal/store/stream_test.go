package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

var testKind = Kind{Name: "test", Version: 3}

type testHead struct{ N int }

// stream returns the bytes of a stream with the given body.
func stream(tb testing.TB, body []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	err := WriteStream(&buf, testKind, testHead{7}, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

// readAll returns the body of a stream.
func readAll(raw []byte) ([]byte, error) {
	var head testHead
	body, err := ReadStream(bytes.NewReader(raw), testKind, &head)
	if err != nil {
		return nil, err
	}
	if head.N != 7 {
		return nil, fmt.Errorf("head = %+v, want 7", head)
	}
	return io.ReadAll(body)
}

func TestStreamRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, maxFrame + 5} {
		body := bytes.Repeat([]byte{1, 2, 3}, size/3+1)[:size]
		got, err := readAll(stream(t, body))
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
}

func TestStreamNoticesEveryCut(t *testing.T) {
	raw := stream(t, []byte("some state"))
	for cut := range raw {
		if _, err := readAll(raw[:cut]); !errors.Is(err, errUnfinished) {
			t.Errorf("cut at %d of %d: %v, want errUnfinished", cut, len(raw), err)
		}
	}
	_, err := readAll(append(raw, 0))
	if damage := new(damageError); !errors.As(err, &damage) || !strings.Contains(err.Error(), "data follows") {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestStreamNoticesEveryFlippedBit(t *testing.T) {
	raw := stream(t, []byte("some state"))
	for i := range len(raw) * 8 {
		changed := bytes.Clone(raw)
		changed[i/8] ^= 1 << (i % 8)
		if _, err := readAll(changed); err == nil {
			t.Errorf("bit %d of byte %d flipped: not noticed", i%8, i/8)
		}
	}
}

func TestStreamNoticesMovedFrames(t *testing.T) {
	var buf bytes.Buffer
	w, err := newFrameWriter(&buf, testKind)
	if err != nil {
		t.Fatal(err)
	}
	start := buf.Len()
	if err := errors.Join(w.frame([]byte("aaaa")), w.frame([]byte("bbbb")), w.finish()); err != nil {
		t.Fatal(err)
	}
	raw, frame := buf.Bytes(), headSize+4
	a, b := raw[start:start+frame], raw[start+frame:start+2*frame]
	end := raw[start+2*frame:]
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, body := range map[string][]byte{
		"swapped": join(b, a, end), "left out": join(a, end), "repeated": join(a, a, b, end),
	} {
		r, err := newFrameReader(bytes.NewReader(join(raw[:start], body)), testKind)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(r)
		if damage := new(damageError); !errors.As(err, &damage) {
			t.Errorf("%s: %v, want damage", name, err)
		}
	}
}

func TestReaderRefusesWhatIsNotIts(t *testing.T) {
	raw := stream(t, nil)
	for _, test := range []struct {
		kind Kind
		says string
	}{
		{Kind{"other", 3}, `it holds "test", not "other"`},
		{Kind{"test", 2}, `"test" has version 3 and this version of Rollcall understands up to 2`},
	} {
		if _, err := newFrameReader(bytes.NewReader(raw), test.kind); err == nil || err.Error() != test.says {
			t.Errorf("%v: %v, want %q", test.kind, err, test.says)
		}
	}
	if _, err := newFrameReader(bytes.NewReader(raw), Kind{"test", 4}); err != nil {
		t.Errorf("a newer reader: %v", err)
	}
	_, err := newFrameReader(strings.NewReader("PK\x03\x04 this is a zip file"), testKind)
	if damage := new(damageError); !errors.As(err, &damage) {
		t.Errorf("a zip file: %v, want damage", err)
	}
}

func TestWriterRefusesBadNames(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", maxName+1)} {
		if err := WriteStream(io.Discard, Kind{Name: name}, nil, nil); err == nil {
			t.Errorf("name of %d bytes accepted", len(name))
		}
	}
}

// FuzzReadStream feeds foreign bytes to the decoder: it must not panic, and
// what it accepts must be what its own bytes encode.
func FuzzReadStream(f *testing.F) {
	f.Add(stream(f, nil))
	f.Add(stream(f, []byte("some state")))
	f.Add([]byte("RLCL\x01\x04\x03\x00test"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, err := readAll(raw)
		if err != nil {
			return
		}
		again, err := readAll(stream(t, body))
		if err != nil || !bytes.Equal(again, body) {
			t.Fatalf("encoding what was decoded gives %d bytes, %v, want %d", len(again), err, len(body))
		}
	})
}

// FuzzStreamDamage changes one byte of a good stream: it must be noticed.
func FuzzStreamDamage(f *testing.F) {
	f.Add([]byte("some state"), uint(3), byte(1))
	f.Add([]byte{}, uint(40), byte(0xFF))
	f.Fuzz(func(t *testing.T, body []byte, at uint, change byte) {
		raw := stream(t, body)
		if got, err := readAll(raw); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("read %d bytes, %v, want %d", len(got), err, len(body))
		}
		raw[at%uint(len(raw))] ^= change
		if _, err := readAll(raw); err == nil && change != 0 {
			t.Fatalf("a change of byte %d by %02x was not noticed", at%uint(len(raw)), change)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	body := make([]byte, 25<<20) // about 100,000 instances of 250 bytes
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			err := WriteStream(io.Discard, testKind, testHead{}, func(w io.Writer) error {
				for i := 0; i < len(body); i += 1 << 10 {
					if _, err := w.Write(body[i : i+1<<10]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		raw := stream(b, body)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			r, err := ReadStream(bytes.NewReader(raw), testKind, &testHead{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
