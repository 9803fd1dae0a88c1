package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/http1"
)

// Errors of calls.
var (
	// ErrUnknown says that the server does not know the instance of a beat.
	ErrUnknown = errors.New("the server does not know the instance")

	errDenied  = errors.New("the server denied it")
	errRefused = errors.New("the server refused")
	errAnswer  = errors.New("the answer is not what it should be")
)

// shown is how much of an answer an error shows, in bytes.
const shown = 200

func refused(status int, body []byte) error {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return Advised(fmt.Errorf("%w with %d: %.*q", errDenied, status, shown, body))
	}
	return fmt.Errorf("%w with %d: %.*q", errRefused, status, shown, body)
}

// httpSession is a client of the 1.x generation.
type httpSession struct {
	ctx     context.Context
	t       *Target
	conn    *http1.Conn // nil after an error
	head    []byte      // the headers of every request
	request []byte
	last    []byte
	tally   tally
}

func (t *Target) dialHTTP(ctx context.Context) (*httpSession, error) {
	s := &httpSession{ctx: ctx, t: t, head: []byte(strings.ReplaceAll(javaHeaders, "$HOST", t.HTTP))}
	return s, s.connect()
}

func (s *httpSession) connect() (err error) {
	s.conn, err = http1.Dial(s.ctx, s.t.HTTP, s.t.Timeout, s.t.httpTLS)
	return err
}

func (s *httpSession) Close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// javaHeaders are those of nacos-client 1.4.
const javaHeaders = " HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nAccept-Charset: UTF-8\r\n" +
	"Accept-Encoding: identity\r\nContent-Encoding: UTF-8\r\nClient-Version: 1.4.8\r\n" +
	"User-Agent: Nacos-Java-Client:v1.4.8\r\nRequestId: 0f7cbbd9-3f5e-4e5e-9a3e-0c1d2b3a4f5e\r\n" +
	"Request-Module: Naming\r\nHost: $HOST\r\nConnection: Keep-Alive\r\n"

// do sends the request line that was laid out, up to its last parameter, and returns the body of a 200.
func (s *httpSession) do(line []byte, write bool) ([]byte, error) {
	if token := s.t.login.current(); token != nil {
		line = append(line, "&"+tokenName+"="...)
		line = append(line, url.QueryEscape(*token)...) // a token has hardly anything to escape
	}
	line = append(line, s.head...)
	if write {
		line = append(line, "Content-Length: 0\r\n"...)
	}
	s.request = append(line, "\r\n"...)
	if s.conn != nil && s.conn.Closed() {
		s.Close()
	}
	if s.conn == nil {
		if err := s.connect(); err != nil {
			return nil, err
		}
	}
	status, body, err := s.conn.Do(s.request)
	if errors.Is(err, http1.ErrStale) { // once more, as the client of Java does
		s.Close()
		if err := s.connect(); err != nil {
			return nil, err
		}
		status, body, err = s.conn.Do(s.request)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.last = body
	if status != 200 {
		return nil, refused(status, body)
	}
	return body, nil
}

func (s *httpSession) LastAnswer() []byte { return s.last }

// expectOK is for calls that are answered ok.
func (s *httpSession) expectOK(body []byte, err error) error {
	if err == nil && string(body) != "ok" && !s.t.Yardstick {
		return refused(200, body)
	}
	return err
}

// The pieces of metadata in a query.
const (
	quote = "%22"
	comma = "%2C"
	colon = "%3A"
)

// appendService appends the escaped name of a service with its group.
func appendService(b []byte, s fleet.Service) []byte {
	b = append(b, s.Fleet.Group...)
	b = append(b, "%40%40"...)
	return s.AppendName(b)
}

func (s *httpSession) Register(i fleet.Instance) error {
	return s.expectOK(s.do(appendRegister(s.request[:0], i), true))
}

func appendRegister(b []byte, i fleet.Instance) []byte {
	b = append(b, "POST /nacos/v1/ns/instance?app=unknown&metadata=%7B"...)
	b = i.AppendMetadata(b, quote, comma, colon)
	b = append(b, "%7D&ip="...)
	b = i.AppendIP(b)
	b = append(b, "&weight="...)
	b = i.AppendWeight(b)
	b = append(b, "&ephemeral="...)
	b = strconv.AppendBool(b, !i.Fleet.Persistent)
	b = append(b, "&serviceName="...)
	b = appendService(b, i.Service)
	b = append(b, "&groupName="...)
	b = append(b, i.Fleet.Group...)
	b = append(b, "&enable="...)
	b = strconv.AppendBool(b, !i.Disabled)
	b = append(b, "&healthy=true&namespaceId=public&clusterName=DEFAULT&port="...)
	return strconv.AppendInt(b, int64(i.Port()), 10)
}

func (s *httpSession) RegisterService(service fleet.Service) error {
	for n := range service.Fleet.Size {
		if err := s.Register(fleet.Instance{Service: service, Host: n}); err != nil {
			return err
		}
	}
	return nil
}

func (s *httpSession) Deregister(i fleet.Instance) error {
	b := append(s.request[:0], "DELETE /nacos/v1/ns/instance?ip="...)
	b = i.AppendIP(b)
	b = append(b, "&ephemeral="...)
	b = strconv.AppendBool(b, !i.Fleet.Persistent)
	b = append(b, "&serviceName="...)
	b = appendService(b, i.Service)
	b = append(b, "&namespaceId=public&clusterName=DEFAULT&port="...)
	b = strconv.AppendInt(b, int64(i.Port()), 10)
	return s.expectOK(s.do(b, true))
}

func (s *httpSession) Beat(i fleet.Instance) error {
	b := append(s.request[:0], "PUT /nacos/v1/ns/instance/beat?app=unknown&serviceName="...)
	b = appendService(b, i.Service)
	b = append(b, "&namespaceId=public&port="...)
	b = strconv.AppendInt(b, int64(i.Port()), 10)
	b = append(b, "&clusterName=DEFAULT&ip="...)
	b = i.AppendIP(b)
	body, err := s.do(b, true)
	switch {
	case err != nil || s.t.Yardstick:
		return err
	case members(body, "code", "10200", "") > 0:
		return nil
	case members(body, "code", "20404", "") > 0:
		return ErrUnknown
	default:
		return refused(200, body)
	}
}

// list looks a service up; with a port other than 0 it subscribes to its packets.
func (s *httpSession) list(service fleet.Service, port int) ([]byte, error) {
	b := append(s.request[:0], "GET /nacos/v1/ns/instance/list?app=unknown&healthyOnly=false&namespaceId=public&clientIP=127.0.0.1&serviceName="...)
	b = appendService(b, service)
	b = append(b, "&udpPort="...)
	b = strconv.AppendInt(b, int64(port), 10)
	return s.do(append(b, "&encoding=UTF-8"...), false)
}

func (s *httpSession) Count(service fleet.Service) (int, error) {
	body, err := s.list(service, 0)
	if err != nil || s.t.Yardstick {
		return service.Fleet.Size, err
	}
	return s.tally.count(body), nil
}

func (s *httpSession) List(service fleet.Service) ([]fleet.Host, error) {
	body, err := s.list(service, 0)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Hosts []fleet.Host `json:"hosts"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return answer.Hosts, nil
}
