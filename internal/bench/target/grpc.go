package target

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/rpc"
)

// grpcSession is a client of the 2.x generation.
type grpcSession struct {
	ctx  context.Context
	t    *Target
	conn *rpc.Conn // nil after an error
	hear hearing
	once bool // a connection that has ended is not replaced

	body, message []byte
	answer        grpcv2.Payload
	heads         grpcHeads
	token         *string // that the heads have
	last          []byte
	tally         tally

	replyBody, replyMessage []byte // of the goroutine that hears
}

// hearing is who hears what comes on the stream. All may be nil; one goroutine calls
// them.
type hearing struct {
	push  func(body []byte) // before it is acknowledged
	acked func()            // after that
	ended func(error)       // the connection has
}

// grpcHeads are the heads of the messages, so that sending one allocates none.
type grpcHeads struct {
	check, setup, instance, batch, query, subscribe, health, notified, detected grpcv2.Head
}

// sign puts a token into the heads of what names a service: clients put it nowhere
// else.
func (h *grpcHeads) sign(token string) {
	for _, head := range []*grpcv2.Head{&h.instance, &h.batch, &h.query, &h.subscribe} {
		head.Headers = map[string]string{tokenName: token}
	}
}

func newHeads() grpcHeads {
	head := func(kind string) grpcv2.Head { return grpcv2.Head{Type: kind, ClientIP: "127.0.0.1"} }
	return grpcHeads{
		head(grpcv2.ServerCheck), head(grpcv2.ConnectionSetup), head(grpcv2.InstanceType), head(grpcv2.BatchInstance),
		head(grpcv2.ServiceQuery), head(grpcv2.SubscribeService), head(grpcv2.HealthCheck),
		head("NotifySubscriberResponse"), head("ClientDetectionResponse"),
	}
}

// dialGRPC connects and registers the connection.
func (t *Target) dialGRPC(ctx context.Context, hear hearing) (*grpcSession, error) {
	s := &grpcSession{ctx: ctx, t: t, hear: hear, heads: newHeads()}
	return s, s.connect()
}

// setup is what a Java client of 2.5 says of itself, without the ability table that
// asks for an answer: the connection is known when a call finds it so.
const setup = `{"clientVersion":"Nacos-Java-Client:v2.5.1","tenant":"","labels":{"source":"sdk","module":"naming","AppName":"unknown"}}`

// setupPause lies between two calls that ask whether the server knows the connection:
// the setup comes on the stream, and calls may overtake it.
const setupPause = time.Millisecond

func (s *grpcSession) connect() error {
	conn, err := s.t.dialer.Dial(s.ctx, rpc.Handler{Message: s.heard, Closed: s.hear.ended})
	if err != nil {
		return err
	}
	s.conn = conn
	if err := s.introduce(); err != nil {
		s.Close()
		return fmt.Errorf("introduce the connection: %w", err)
	}
	return nil
}

func (s *grpcSession) introduce() error {
	if _, err := s.call(&s.heads.check, []byte("{}")); err != nil {
		return err
	}
	s.message = grpcv2.AppendPayload(s.message[:0], &s.heads.setup, []byte(setup))
	if err := s.conn.Send(s.message); err != nil {
		return err
	}
	for end := time.Now().Add(s.t.Timeout); ; time.Sleep(setupPause) {
		_, err := s.call(&s.heads.health, []byte("{}"))
		if err == nil || s.ctx.Err() != nil || s.conn == nil || time.Now().After(end) {
			return err
		}
	}
}

func (s *grpcSession) LastAnswer() []byte { return s.last }

func (s *grpcSession) Close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// call makes a call and returns the body of a success.
func (s *grpcSession) call(head *grpcv2.Head, body []byte) ([]byte, error) {
	if s.conn == nil {
		if s.once {
			return nil, rpc.ErrClosed
		}
		if err := s.connect(); err != nil {
			return nil, err
		}
	}
	if token := s.t.login.current(); token != s.token {
		s.token = token
		s.heads.sign(*token)
	}
	s.message = grpcv2.AppendPayload(s.message[:0], head, body)
	answer, err := s.conn.Call(s.message)
	if err != nil {
		if s.conn.Err() != nil {
			s.Close()
		}
		return nil, err
	}
	s.last = answer
	if s.t.Yardstick {
		return nil, nil
	}
	if err := s.answer.Unmarshal(answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	if members(s.answer.Body, "resultCode", "200", "") == 0 {
		return nil, s.refused()
	}
	return s.answer.Body, nil
}

// refused is the error of the answer.
func (s *grpcSession) refused() error {
	if members(s.answer.Body, "errorCode", "403", "") > 0 { // NacosException.NO_RIGHT
		return Advised(fmt.Errorf("%w with %s: %.*q", errDenied, s.answer.Type, shown, s.answer.Body))
	}
	return fmt.Errorf("%w with %s: %.*q", errRefused, s.answer.Type, shown, s.answer.Body)
}

// heard answers what the server asks on the stream.
func (s *grpcSession) heard(c *rpc.Conn, message []byte) {
	var p grpcv2.Payload
	if err := p.Unmarshal(message); err != nil {
		c.Abort()
		return
	}
	switch p.Type {
	case grpcv2.NotifySubscriber:
		if s.hear.push != nil {
			s.hear.push(p.Body)
		}
		s.reply(c, &s.heads.notified, p.Body)
		if s.hear.acked != nil {
			s.hear.acked()
		}
	case grpcv2.ClientDetection:
		s.reply(c, &s.heads.detected, p.Body)
	case grpcv2.ConnectReset:
		c.Abort()
	}
}

// reply answers a request of the server. A connection that has failed is found out
// by the next call.
func (s *grpcSession) reply(c *rpc.Conn, head *grpcv2.Head, request []byte) {
	s.replyBody = append(s.replyBody[:0], `{"resultCode":200,"errorCode":0,"success":true,"requestId":"`...)
	s.replyBody = append(append(s.replyBody, requestID(request)...), `"}`...)
	s.replyMessage = grpcv2.AppendPayload(s.replyMessage[:0], head, s.replyBody)
	_ = c.Send(s.replyMessage)
}

// requestID returns the requestId of an encoded request.
func requestID(body []byte) []byte {
	value, _ := member(body, "requestId")
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	id, _, _ := bytes.Cut(value[1:], []byte(`"`))
	return id
}

// begin lays out the members that all naming requests share.
func (s *grpcSession) begin(service fleet.Service) []byte {
	b := append(s.body[:0], `{"headers":{},"namespace":"public","serviceName":"`...)
	b = service.AppendName(b)
	b = append(b, `","groupName":"`...)
	b = append(b, service.Fleet.Group...)
	return append(b, `","module":"naming",`...)
}

func appendInstance(b []byte, i fleet.Instance) []byte {
	b = append(b, `{"ip":"`...)
	b = i.AppendIP(b)
	b = append(b, `","port":`...)
	b = strconv.AppendInt(b, int64(i.Port()), 10)
	b = append(b, `,"weight":`...)
	b = i.AppendWeight(b)
	b = append(b, `,"healthy":true,"enabled":`...)
	b = strconv.AppendBool(b, !i.Disabled)
	b = append(b, `,"ephemeral":true,"clusterName":"DEFAULT","metadata":{`...)
	return append(i.AppendMetadata(b, `"`, ",", ":"), "}}"...)
}

func (s *grpcSession) instance(kind string, i fleet.Instance) error {
	b := append(s.begin(i.Service), `"type":"`...)
	b = append(b, kind...)
	b = append(b, `","instance":`...)
	s.body = append(appendInstance(b, i), '}')
	_, err := s.call(&s.heads.instance, s.body)
	return err
}

func (s *grpcSession) Register(i fleet.Instance) error { return s.instance(grpcv2.Register, i) }

func (s *grpcSession) Deregister(i fleet.Instance) error { return s.instance(grpcv2.Deregister, i) }

func (s *grpcSession) RegisterService(service fleet.Service) error {
	b := append(s.begin(service), `"type":"`+grpcv2.BatchRegister+`","instances":[`...)
	for n := range service.Fleet.Size {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendInstance(b, fleet.Instance{Service: service, Host: n})
	}
	s.body = append(b, "]}"...)
	_, err := s.call(&s.heads.batch, s.body)
	return err
}

func (s *grpcSession) Beat(fleet.Instance) error {
	_, err := s.call(&s.heads.health, []byte("{}"))
	return err
}

func (s *grpcSession) list(service fleet.Service) ([]byte, error) {
	s.body = append(s.begin(service), `"cluster":"","healthyOnly":false,"udpPort":0}`...)
	return s.call(&s.heads.query, s.body)
}

// subscribe returns the answer with the list.
func (s *grpcSession) subscribe(service fleet.Service) ([]byte, error) {
	s.body = append(s.begin(service), `"clusters":"","subscribe":true}`...)
	return s.call(&s.heads.subscribe, s.body)
}

func (s *grpcSession) Count(service fleet.Service) (int, error) {
	body, err := s.list(service)
	if err != nil || s.t.Yardstick {
		return service.Fleet.Size, err
	}
	return s.tally.count(body), nil
}

func (s *grpcSession) List(service fleet.Service) ([]fleet.Host, error) {
	body, err := s.list(service)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Service struct {
			Hosts []fleet.Host `json:"hosts"`
		} `json:"serviceInfo"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return answer.Service.Hosts, nil
}
