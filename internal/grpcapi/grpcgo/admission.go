package grpcgo

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// admission counts connections against the two limits.
type admission struct {
	max, maxPerIP int // 0 is no limit

	mu       sync.Mutex
	total    int
	perIP    map[netip.Addr]int // no entry is 0
	refusing int
	refused  struct{ inAll, ofAddress uint64 }
}

// enter counts a connection, or says why it is one too many.
func (a *admission) enter(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.max > 0 && a.total >= a.max:
		a.refused.inAll++
		return fmt.Errorf("too many connections: the server serves at most %d", a.max)
	case a.maxPerIP > 0 && a.perIP[ip] >= a.maxPerIP:
		a.refused.ofAddress++
		return fmt.Errorf("too many connections from this address: at most %d", a.maxPerIP)
	}
	a.total++
	a.perIP[ip]++
	return nil
}

// leave takes a connection off the count.
func (a *admission) leave(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.perIP[ip]--; a.perIP[ip] == 0 {
		delete(a.perIP, ip)
	}
}

// maxRefusing is how many refused connections may wait for their client to read
// the reason; further ones are closed without one.
const maxRefusing = 64

// refuse tells a client why it is not served, and closes its connection.
func (a *admission) refuse(nc net.Conn, prefix []byte, reason error) {
	defer func() { _ = nc.Close() }()
	if !a.startRefusing() {
		return
	}
	defer a.stopRefusing()
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil || answerOnce(nc, prefix, reason.Error()) != nil {
		return
	}
	// Closing at once would reset the connection and lose the answer on its way.
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, maxHeaders)
	}
}

// answerOnce speaks just enough HTTP/2 to end the client's first call or stream
// with UNAVAILABLE, which every gRPC library shows as that call's error. GOAWAY
// alone has its text lost in some of them.
func answerOnce(nc net.Conn, prefix []byte, text string) error {
	in := io.MultiReader(bytes.NewReader(prefix), nc)
	if _, err := io.CopyN(io.Discard, in, int64(len(http2.ClientPreface))); err != nil {
		return err
	}
	fr := http2.NewFramer(nc, in)
	if err := fr.WriteSettings(); err != nil {
		return err
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		if _, called := f.(*http2.HeadersFrame); !called {
			continue
		}
		err = fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: f.Header().StreamID, BlockFragment: refusalHeaders(text), EndHeaders: true, EndStream: true,
		})
		if err != nil {
			return err
		}
		return fr.WriteGoAway(f.Header().StreamID, http2.ErrCodeEnhanceYourCalm, []byte(text))
	}
}

// refusalHeaders returns the headers of an answer that is nothing but a status.
func refusalHeaders(text string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{
		{Name: ":status", Value: "200"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "grpc-status", Value: strconv.Itoa(int(transport.Unavailable))},
		{Name: "grpc-message", Value: text},
	} {
		_ = enc.WriteField(f) // into memory, which does not fail
	}
	return b.Bytes()
}

func (a *admission) startRefusing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusing >= maxRefusing {
		return false
	}
	a.refusing++
	return true
}

func (a *admission) stopRefusing() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusing--
}

// counts returns how many connections are served and how many were refused.
func (a *admission) counts() (served int, refused uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total, a.refused.inAll + a.refused.ofAddress
}

// refusals returns how many were refused by the limit of all connections and by that
// of an address.
func (a *admission) refusals() (inAll, ofAddress uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused.inAll, a.refused.ofAddress
}
