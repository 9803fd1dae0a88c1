package grpcmode

import (
	"context"
	"errors"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

var (
	errNoFuzzy = errors.New("the server watches no patterns")
	errPattern = errors.New("a pattern may have * at the beginning and the end of a name only")
)

// WatchServices asks for the services that match a pattern, as far as they are not known
// already, and for changes.
func (t *Transport) WatchServices(ctx context.Context, p wire.Pattern, known []wire.Service) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	switch {
	case !s.info.Fuzzy:
		return &wire.Error{Kind: wire.Unsupported, Server: s.info.Server, Err: errNoFuzzy}
	case !speakable(p.Group) || !speakable(p.Name):
		return &wire.Error{Kind: wire.Unsupported, Server: s.info.Server, Err: errPattern}
	}
	received := make([]string, len(known))
	for n, service := range known {
		received[n] = service.Namespace + "@@" + service.Group + "@@" + service.Name
	}
	text := patternText(p)
	s.mu.Lock()
	s.patterns[text] = p
	s.mu.Unlock()
	_, err = s.main.call(ctx, grpcv2.FuzzyWatch, "", grpcv2.AppendFuzzyRequest(nil, grpcv2.Watch, p.Namespace, text, received))
	return err
}

// UnwatchServices ends that.
func (t *Transport) UnwatchServices(ctx context.Context, p wire.Pattern) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	text := patternText(p)
	s.mu.Lock()
	delete(s.patterns, text)
	s.mu.Unlock()
	_, err = s.main.call(ctx, grpcv2.FuzzyWatch, "", grpcv2.AppendFuzzyRequest(nil, grpcv2.CancelWatch, p.Namespace, text, nil))
	return err
}

// speakable reports whether the protocol has words for an item of a pattern.
func speakable(item string) bool {
	return !strings.Contains(strings.TrimSuffix(strings.TrimPrefix(item, "*"), "*"), "*")
}

func patternText(p wire.Pattern) string { return p.Namespace + ">>" + p.Group + ">>" + p.Name }

// fuzzy takes what a server tells of patterns: of one, or of a service whose patterns
// the client knows.
func (s *session) fuzzy(told *grpcv2.FuzzySync) {
	change := wire.ServicesChange{Session: s.info.ID, Complete: told.Kind == grpcv2.SyncFinish}
	for _, c := range told.Changes {
		service, ok := serviceOf(c.Service)
		switch {
		case !ok:
			s.transport.events.Dropped("grpc_malformed")
		case c.Change == grpcv2.DeleteService:
			change.Removed = append(change.Removed, service)
		default:
			change.Added = append(change.Added, service)
		}
	}
	for _, p := range s.meant(told.Pattern, &change) {
		change.Pattern = p
		s.transport.deliver(s, func(events wire.Events) { events.ServicesChanged(change) })
	}
}

// meant returns the patterns that a message is about: the one that it names, or those
// that match its one change.
func (s *session) meant(text string, change *wire.ServicesChange) []wire.Pattern {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != "" {
		if p, ok := s.patterns[text]; ok {
			return []wire.Pattern{p}
		}
		return nil
	}
	var of []wire.Pattern
	for _, service := range append(change.Added[:len(change.Added):len(change.Added)], change.Removed...) {
		for _, p := range s.patterns {
			if p.Matches(service) {
				of = append(of, p)
			}
		}
	}
	return of
}

// serviceOf reads namespace@@group@@service.
func serviceOf(key string) (wire.Service, bool) {
	namespace, rest, ok := strings.Cut(key, "@@")
	if !ok {
		return wire.Service{}, false
	}
	group, name, ok := strings.Cut(rest, "@@")
	return wire.Service{Namespace: namespace, Group: group, Name: name}, ok && group != "" && name != ""
}
