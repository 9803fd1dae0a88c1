package bench

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
	"github.com/rollcall-registry/rollcall/servertest"
)

// A server that says yes to everything and does nothing has no figures, whatever it
// is measured by.
func TestCheatsAreCaught(t *testing.T) {
	t.Parallel()
	server := cheat(t)
	for _, c := range tiny() {
		if c.Workload == "beat" && c.Protocol == target.GRPC {
			continue // nothing but the connection is kept alive
		}
		t.Run(c.Workload+" via "+string(c.Protocol), func(t *testing.T) {
			t.Parallel()
			if r := measure(t, server, 300*time.Millisecond, c); r.Fault == "" {
				t.Errorf("it got away with it: %+v", r)
			}
		})
	}
}

// A server that gives each list as it was when it was first asked for is found out by
// the changes of the services that are looked up.
func TestFrozenListsAreCaught(t *testing.T) {
	t.Parallel()
	honest := servertest.New(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: honest.Addr()})
	var frozen sync.Map
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/list") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		first, _ := frozen.LoadOrStore(r.Request.URL.Query().Get("serviceName"), body)
		r.Body = io.NopCloser(bytes.NewReader(first.([]byte)))
		r.ContentLength = int64(len(first.([]byte)))
		r.Header.Set("Content-Length", strconv.Itoa(len(first.([]byte))))
		return nil
	}
	web := httptest.NewServer(proxy)
	t.Cleanup(web.Close)
	server, err := target.New("frozen", web.Listener.Addr().String(), honest.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r := measure(t, server, time.Second, workload.Config{
		Workload: "mixed", Protocol: target.HTTP, Services: 2, Instances: 3, Connections: 4, Duration: 300 * time.Millisecond,
	})
	if !strings.Contains(r.Fault, "listed") {
		t.Errorf("it got away with it: %+v", r)
	}
}

// cheat starts a server that says yes.
func cheat(t *testing.T) *target.Target {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/beat"):
			_, _ = io.WriteString(w, `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`)
		case strings.HasSuffix(r.URL.Path, "/list"):
			_, _ = io.WriteString(w, `{"hosts":[{"ip":"127.0.0.1","port":1,"weight":1.0,"healthy":true,"enabled":true,"metadata":{}}]}`)
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	t.Cleanup(web.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(sayYes))
	go func() { _ = calls.Serve(ln) }()
	t.Cleanup(calls.Stop)
	s, err := target.New("cheat", web.Listener.Addr().String(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sayYes answers every message of a call, and reads those of the stream.
func sayYes(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	for {
		var request []byte
		if err := s.RecvMsg(&request); err != nil {
			return err
		}
		if !strings.HasSuffix(method, grpcv2.UnaryMethod) {
			continue
		}
		const yes = `{"resultCode":200,"errorCode":0,"success":true,"message":"success",` +
			`"serviceInfo":{"hosts":[{"ip":"127.0.0.1","port":1,"weight":1.0,"healthy":true,"enabled":true,"metadata":{}}]}}`
		return s.SendMsg(grpcv2.AppendPayload(nil, &grpcv2.Head{Type: "Response"}, []byte(yes)))
	}
}

// rawCodec moves messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
