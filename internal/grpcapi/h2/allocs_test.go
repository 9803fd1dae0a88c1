//go:build !race

package h2

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"testing"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// allocations returns how many allocations the process makes for one call of f, on
// the average of many. It keeps the collector off, which empties pools.
func allocations(f func()) float64 {
	const warm, runs = 100, 2000
	for range warm {
		f()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := mallocs()
	for range runs {
		f()
	}
	return float64(mallocs()-before) / runs
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// skipFrames reads frames up to one of a kind and flags, and allocates nothing.
func skipFrames(t testing.TB, nc net.Conn, buf []byte, kind http2.FrameType, flags http2.Flags) {
	for {
		if _, err := io.ReadFull(nc, buf[:frameHeaderLen]); err != nil {
			t.Fatal(err)
		}
		size := binary.BigEndian.Uint32(buf) >> 8
		found := http2.FrameType(buf[3]) == kind && http2.Flags(buf[4])&flags == flags
		if _, err := io.ReadFull(nc, buf[:size]); err != nil {
			t.Fatal(err)
		}
		if found {
			return
		}
	}
}

// What the transport allocates for a call and for a push, over a socket. The client is
// bytes that were made before, so that only the server counts. The race detector has
// pools forget at random, so it is left out.
func TestAllocations(t *testing.T) {
	buf := make([]byte, maxFrame)
	t.Run("call", func(t *testing.T) {
		nc := benchServe(t, &echo{})
		c := newCalls(transporttest.Message("T", "{}"))
		var requests [][]byte
		for range 2100 {
			requests = append(requests, bytes.Clone(c.next()))
		}
		n := 0
		got := allocations(func() {
			if _, err := nc.Write(requests[n]); err != nil {
				t.Fatal(err)
			}
			n++
			skipFrames(t, nc, buf, http2.FrameHeaders, http2.FlagHeadersEndStream)
		})
		// The stream, and the frame of its headers, which x/net/http2 makes.
		if most := 2.0; got > most+0.05 {
			t.Errorf("%.2f allocations a call, want at most %v", got, most)
		}
	})
	t.Run("push", func(t *testing.T) {
		e := &echo{}
		nc := benchServe(t, e)
		c := newCalls(nil)
		_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.stream(), EndHeaders: true})
		if _, err := nc.Write(c.out.Bytes()); err != nil {
			t.Fatal(err)
		}
		for e.opened.Load() == 0 {
			runtime.Gosched()
		}
		tail := bytes.Repeat([]byte("x"), 600)
		got := allocations(func() {
			e.push(0, 1, tail)
			skipFrames(t, nc, buf, http2.FrameData, 0)
		})
		if got > 0.05 {
			t.Errorf("%.2f allocations a push, want none", got)
		}
	})
}
