package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/server"
)

// The servers that are compared.
const (
	echoServer     = "echo"
	rollcallServer = "rollcall"
)

// target is a running server.
type target struct {
	kind    string
	address string
	cmd     *exec.Cmd
	dir     string
}

// start starts a server in a process with one processor.
func start(ctx context.Context, kind string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rollcall-bench")
	if err != nil {
		return nil, err
	}
	t := &target{kind: kind, dir: dir, cmd: exec.CommandContext(ctx, self, "-child", kind)}
	t.cmd.Dir = dir
	t.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	t.cmd.Stderr = os.Stderr
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server said %q: %w", line, err), t.stop())
	}
	t.address = strings.TrimSpace(line)
	return t, nil
}

func (t *target) stop() error {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	_ = t.cmd.Wait() // its end is no news
	return os.RemoveAll(t.dir)
}

// usage returns what the server uses now.
func (t *target) usage() (process.Usage, error) { return process.Read(t.cmd.Process.Pid) }

// serveChild serves until the process is told to end, and prints its address.
func serveChild(ctx context.Context, kind string) error {
	if kind == rollcallServer {
		return serveRollcall(ctx)
	}
	return serveEcho(ctx)
}

func serveRollcall(ctx context.Context) error {
	cfg := server.DefaultConfig()
	cfg.Listen, cfg.GRPCListen, cfg.DataDir = []string{"127.0.0.1:0"}, "off", "data"
	s, err := server.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	go func() {
		<-s.Ready()
		fmt.Println(s.Addrs().HTTP[0])
	}()
	return s.Run(ctx)
}

// echo is a bare server: grpc-go as it comes, with protobuf's own messages. A
// request begins with the size of the answer; its calls of broadcast answer when
// all streams have been sent as many bytes.
type echo struct {
	mu      sync.Mutex
	streams map[grpc.ServerStream]struct{}
}

func serveEcho(ctx context.Context) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e := &echo{streams: map[grpc.ServerStream]struct{}{}}
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcv2.UnaryService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: grpcv2.UnaryMethod, Handler: e.answer}, {MethodName: "broadcast", Handler: e.broadcast}},
	}, nil)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcv2.StreamService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: grpcv2.StreamMethod, Handler: e.stream, ServerStreams: true, ClientStreams: true}},
	}, nil)
	defer context.AfterFunc(ctx, g.Stop)()
	fmt.Println(ln.Addr())
	return g.Serve(ln)
}

func answerSize(q *wrapperspb.BytesValue) uint32 { return binary.BigEndian.Uint32(q.GetValue()) }

func (e *echo) answer(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	q := &wrapperspb.BytesValue{}
	if err := decode(q); err != nil {
		return nil, err
	}
	return wrapperspb.Bytes(make([]byte, answerSize(q))), nil
}

func (e *echo) broadcast(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	q := &wrapperspb.BytesValue{}
	if err := decode(q); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.streams {
		if err := s.SendMsg(wrapperspb.Bytes(make([]byte, answerSize(q)))); err != nil {
			delete(e.streams, s)
		}
	}
	return q, nil
}

func (e *echo) stream(_ any, s grpc.ServerStream) error {
	e.mu.Lock()
	e.streams[s] = struct{}{}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.streams, s)
		e.mu.Unlock()
	}()
	for {
		if err := s.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
			return err
		}
	}
}
