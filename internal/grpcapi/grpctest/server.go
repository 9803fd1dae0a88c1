package grpctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// Script is how a [Server] behaves. The zero value is a server of 2.0: it negotiates no
// abilities, knows no batches, and has one place per connection and service, so that a
// second registration takes the place of the first. It does not push by itself.
type Script struct {
	// Listener is where it serves; nil for a port of loopback.
	Listener net.Listener
	// Negotiates: it promises its abilities, and sends them to who sends his, unless
	// they are nil.
	Negotiates bool
	Abilities  []string
	// Answer is asked first, if it is set, for each request; it may wait. ok false
	// leaves it to the server.
	Answer func(p *Peer, request Frame) (answer Message, ok bool)
}

// Server is a server that does what a test wants, as no good one does.
type Server struct {
	script Script
	server *grpc.Server
	addr   string

	mu    sync.Mutex
	count int
	peers map[int]*Peer
	news  chan struct{} // closed and replaced when something happened
}

// Peer is a client's connection as the server sees it.
type Peer struct {
	// ID counts connections from 1.
	ID     int
	server *Server

	// guarded by Server.mu
	out   chan []byte // nil without a stream
	setup Frame
	heard []Frame           // on the stream, after the setup
	asked []Frame           // all requests, in order
	held  map[string]string // ip:port by group@@service
	end   context.CancelCauseFunc
}

// outgoing is how many messages wait to be sent to a client.
const outgoing = 256

// Serve starts a server; stop ends it and its connections.
func Serve(script Script) (s *Server, stop func(), err error) {
	if script.Listener == nil {
		if script.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, nil, err
		}
	}
	s = &Server{script: script, addr: script.Listener.Addr().String(), peers: map[int]*Peer{}, news: make(chan struct{})}
	s.server = grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}), grpc.StatsHandler(tagger{s}), grpc.UnknownServiceHandler(s.serve),
		grpc.MaxRecvMsgSize(1<<30), grpc.MaxSendMsgSize(1<<30), grpc.WaitForHandlers(true))
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.server.Serve(script.Listener) })
	return s, func() { s.server.Stop(); serving.Wait() }, nil
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.addr }

// Peers returns the connections that there are, the oldest first.
func (s *Server) Peers() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Collect(maps.Values(s.peers))
	slices.SortFunc(list, func(a, b *Peer) int { return a.ID - b.ID })
	return list
}

// Wait waits until a condition holds. It returns false if ctx ended before.
func (s *Server) Wait(ctx context.Context, done func() bool) bool {
	for {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if done() {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return done()
		}
	}
}

// happened wakes who waits. The caller holds mu.
func (s *Server) happened() {
	close(s.news)
	s.news = make(chan struct{})
}

// Hosts returns what is registered of group@@service, sorted, an address each time it is
// there.
func (s *Server) Hosts(service string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts(service)
}

func (s *Server) hosts(service string) []string {
	var hosts []string
	for _, p := range s.peers {
		if h, ok := p.held[service]; ok {
			hosts = append(hosts, h)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// Setup returns the body by which the client registered its connection, empty before.
func (p *Peer) Setup() string {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return string(p.setup.Body)
}

// Heard returns what the client sent on the stream after that.
func (p *Peer) Heard() []Frame {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return slices.Clone(p.heard)
}

// Asked returns the requests that the client made.
func (p *Peer) Asked() []Frame {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return slices.Clone(p.asked)
}

// Say sends a message on the stream.
func (p *Peer) Say(messageType, body string) error {
	m := Message{Head: grpcv2.Head{Type: messageType, ClientIP: "127.0.0.1"}, Body: body}
	return p.Send(m.encode())
}

var errNoStream = errors.New("the client has no stream, or does not read it")

// Send sends bytes as a message on the stream.
func (p *Peer) Send(b []byte) error {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if p.out == nil {
		return errNoStream
	}
	select {
	case p.out <- b:
		return nil
	default:
		return errNoStream
	}
}

// End ends the stream with an error, or with OK if it is nil.
func (p *Peer) End(err error) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	switch {
	case p.end == nil:
	case err == nil:
		p.end(errEnd)
	default:
		p.end(err)
	}
}

var errEnd = errors.New("end of the stream")

// tagger gives connections their peers.
type tagger struct{ server *Server }

type peerKey struct{}

func (t tagger) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	p := &Peer{ID: s.count, server: s, held: map[string]string{}}
	s.peers[p.ID] = p
	s.happened()
	return context.WithValue(ctx, peerKey{}, p)
}

func (t tagger) HandleConn(ctx context.Context, c stats.ConnStats) {
	if _, over := c.(*stats.ConnEnd); !over {
		return
	}
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	delete(t.server.peers, ctx.Value(peerKey{}).(*Peer).ID)
	t.server.happened()
}

func (tagger) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (tagger) HandleRPC(context.Context, stats.RPCStats)                       {}

// serve serves both methods.
func (s *Server) serve(_ any, stream grpc.ServerStream) error {
	p := stream.Context().Value(peerKey{}).(*Peer)
	if method, _ := grpc.MethodFromServerStream(stream); strings.HasSuffix(method, grpcv2.StreamMethod) {
		return s.converse(p, stream)
	}
	request, err := receive(stream)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.asked = append(p.asked, request)
	s.happened()
	s.mu.Unlock()
	answer, ok := Message{}, false
	if s.script.Answer != nil {
		answer, ok = s.script.Answer(p, request)
	}
	if !ok {
		answer = s.answer(p, &request)
	}
	if answer.Type == "" {
		return status.Error(codes.Unavailable, answer.Body)
	}
	return stream.SendMsg(answer.encode())
}

func receive(stream grpc.ServerStream) (Frame, error) {
	var b []byte
	if err := stream.RecvMsg(&b); err != nil {
		return Frame{}, err
	}
	return frameOf(b)
}

// converse serves the stream.
func (s *Server) converse(p *Peer, stream grpc.ServerStream) error {
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	setup, err := receive(stream)
	if err != nil {
		return err
	}
	out := make(chan []byte, outgoing)
	s.mu.Lock()
	p.setup, p.out, p.end = setup, out, end
	s.happened()
	s.mu.Unlock()
	if s.script.Abilities != nil && strings.Contains(string(setup.Body), `"abilityTable":{`) {
		m := Message{Head: grpcv2.Head{Type: grpcv2.SetupAck}, Body: string(grpcv2.AppendSetupAck(nil, s.script.Abilities...))}
		out <- m.encode()
	}
	go s.listen(p, stream) // ends with the stream
	for {
		select {
		case b := <-out:
			if err := stream.SendMsg(b); err != nil {
				return err
			}
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, errEnd) {
				return nil
			}
			return status.Error(codes.Unavailable, cause.Error())
		}
	}
}

// listen takes what the client sends on the stream.
func (s *Server) listen(p *Peer, stream grpc.ServerStream) {
	for {
		f, err := receive(stream)
		if err != nil {
			return
		}
		s.mu.Lock()
		p.heard = append(p.heard, f)
		s.happened()
		s.mu.Unlock()
	}
}

// Refuse returns an answer that tells of a failure.
func Refuse(code int32, message string) Message {
	f := grpcv2.Failure{Result: grpcv2.ResultFailure, Code: code, Message: message}
	return Message{Head: grpcv2.Head{Type: grpcv2.ErrorResponse}, Body: string(grpcv2.AppendFailure(nil, &f))}
}

// Fail returns what makes a call end with the status UNAVAILABLE.
func Fail(message string) Message { return Message{Body: message} }

// Answer returns a success of a type, with more members than all have.
func Answer(answerType, members string) Message {
	b := grpcv2.AppendSuccess(nil)
	if members != "" {
		b = append(append(append(b[:len(b)-1], ','), members...), '}')
	}
	return Message{Head: grpcv2.Head{Type: answerType}, Body: string(b)}
}

// answer is what a server of 2.0 does.
func (s *Server) answer(p *Peer, request *Frame) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case request.Type == grpcv2.ServerCheck:
		return Answer(grpcv2.ServerCheckResponse, fmt.Sprintf(`"connectionId":"%d","supportAbilityNegotiation":%v`, p.ID, s.script.Negotiates))
	case p.setup.Type == "":
		return Refuse(grpcv2.CodeUnregistered, "Connection is unregistered.")
	}
	var q struct {
		ServiceName, GroupName, Type string
		Instance                     struct {
			IP   string
			Port int
		}
	}
	if err := json.Unmarshal(request.Body, &q); err != nil {
		return Refuse(grpcv2.CodeBadRequest, err.Error())
	}
	name := q.GroupName + "@@" + q.ServiceName
	defer s.happened()
	switch request.Type {
	case grpcv2.HealthCheck:
		return Answer(grpcv2.HealthCheckResponse, "")
	case grpcv2.InstanceType:
		if q.Type == grpcv2.Deregister {
			delete(p.held, name)
		} else {
			p.held[name] = fmt.Sprintf("%s:%d", q.Instance.IP, q.Instance.Port)
		}
		return Answer(grpcv2.InstanceResponse, fmt.Sprintf(`"type":%q`, q.Type))
	case grpcv2.SubscribeService, grpcv2.ServiceQuery:
		var hosts []string
		for _, h := range s.hosts(name) {
			ip, port, _ := strings.Cut(h, ":")
			hosts = append(hosts, fmt.Sprintf(`{"ip":%q,"port":%s}`, ip, port))
		}
		return Answer(grpcv2.SubscribeServiceResponse, fmt.Sprintf(
			`"serviceInfo":{"name":%q,"groupName":%q,"clusters":"","hosts":[%s],"lastRefTime":1}`, q.ServiceName, q.GroupName, strings.Join(hosts, ",")))
	default:
		return Refuse(grpcv2.CodeNoHandler, "RequestHandler Not Found")
	}
}
