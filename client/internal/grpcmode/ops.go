package grpcmode

import (
	"context"
	"errors"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

var errNoPersistent = errors.New("the server takes no persistent instances over gRPC")

// Subscribe asks for a service and for pushes of it. Pushes are taken from now on, even
// if the answer is lost: the server may have subscribed the client.
func (t *Transport) Subscribe(ctx context.Context, service wire.Service) (wire.List, error) {
	s, err := t.session()
	if err != nil {
		return wire.List{}, err
	}
	s.subscribe(service, true)
	name := grpcv2.ServiceName(service)
	a, err := s.main.call(ctx, grpcv2.SubscribeService, resource(service), grpcv2.AppendSubscribeRequest(nil, &name, true))
	return s.list(service, &a, err)
}

// Unsubscribe ends that.
func (t *Transport) Unsubscribe(ctx context.Context, service wire.Service) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	s.subscribe(service, false)
	name := grpcv2.ServiceName(service)
	_, err = s.main.call(ctx, grpcv2.SubscribeService, resource(service), grpcv2.AppendSubscribeRequest(nil, &name, false))
	return err
}

// Query asks for a service once.
func (t *Transport) Query(ctx context.Context, service wire.Service) (wire.List, error) {
	s, err := t.session()
	if err != nil {
		return wire.List{}, err
	}
	return s.query(ctx, service)
}

func (s *session) query(ctx context.Context, service wire.Service) (wire.List, error) {
	name := grpcv2.ServiceName(service)
	a, err := s.main.call(ctx, grpcv2.ServiceQuery, resource(service), grpcv2.AppendQueryRequest(nil, &name))
	return s.list(service, &a, err)
}

// list makes a list of an answer.
func (s *session) list(service wire.Service, a *grpcv2.Answer, err error) (wire.List, error) {
	switch {
	case err != nil:
		return wire.List{}, err
	case a.Info == nil:
		return wire.List{}, &wire.Error{Kind: wire.BadAnswer, Server: s.info.Server, Err: errNoList, Attempts: 1}
	}
	return wire.List{Service: service, Session: s.info.ID, Server: s.info.Server, Asked: true, Raw: a.Info}, nil
}

// Services returns a page of names.
func (t *Transport) Services(ctx context.Context, namespace, group string, page, size int) ([]string, int, error) {
	s, err := t.session()
	if err != nil {
		return nil, 0, err
	}
	a, err := s.main.call(ctx, grpcv2.ServiceList, "", grpcv2.AppendListRequest(nil, namespace, group, page, size))
	if err != nil {
		return nil, 0, err
	}
	return a.Names, int(a.Count), nil
}
