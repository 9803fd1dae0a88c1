package grpcmode

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

var errNoFuzzy = errors.New("the server watches no patterns")

// WatchServices asks for the services that match a pattern, as far as they are not known
// already, and for changes. For a pattern that the protocol has no words for it watches
// one that matches more.
func (t *Transport) WatchServices(ctx context.Context, p wire.Pattern, known []wire.Service) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	if !s.info.Fuzzy {
		return &wire.Error{Kind: wire.Unsupported, Server: s.info.Server, Err: errNoFuzzy}
	}
	received := make([]string, len(known))
	for n, service := range known {
		received[n] = service.Namespace + "@@" + service.Group + "@@" + service.Name
	}
	text := patternText(p)
	s.mu.Lock()
	if of := s.patterns[text]; !slices.Contains(of, p) {
		s.patterns[text] = append(slices.Clip(of), p)
	}
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
	rest := slices.DeleteFunc(slices.Clone(s.patterns[text]), func(o wire.Pattern) bool { return o == p })
	s.patterns[text] = rest
	if len(rest) == 0 {
		delete(s.patterns, text)
	}
	s.mu.Unlock()
	if len(rest) > 0 {
		return nil // another pattern has the same words
	}
	_, err = s.main.call(ctx, grpcv2.FuzzyWatch, "", grpcv2.AppendFuzzyRequest(nil, grpcv2.CancelWatch, p.Namespace, text, nil))
	return err
}

// spoken returns an item of a pattern, or the next wider one that the protocol has words
// for: it knows * at the beginning and at the end only.
func spoken(item string) string {
	inner, open := strings.CutPrefix(item, "*")
	first, rest, star := strings.Cut(inner, "*")
	switch {
	case !star || first != "" && rest == "":
		return item
	case first == "":
		return "*"
	case open:
		return "*" + first + "*"
	default:
		return first + "*"
	}
}

// patternText returns the words for a pattern. Several may have the same.
func patternText(p wire.Pattern) string {
	return p.Namespace + ">>" + spoken(p.Group) + ">>" + spoken(p.Name)
}

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
		part := change
		part.Pattern, part.Added, part.Removed = p, matching(p, change.Added), matching(p, change.Removed)
		s.transport.deliver(s, func(events wire.Events) { events.ServicesChanged(part) })
	}
}

// meant returns the patterns that a message is about: those with the words that it names,
// or those that match its one change. The lists of patterns are never changed in place.
func (s *session) meant(text string, change *wire.ServicesChange) []wire.Pattern {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != "" {
		return s.patterns[text]
	}
	var of []wire.Pattern
	for _, service := range append(change.Added[:len(change.Added):len(change.Added)], change.Removed...) {
		for _, patterns := range s.patterns {
			for _, p := range patterns {
				if p.Matches(service) {
					of = append(of, p)
				}
			}
		}
	}
	return of
}

// matching returns the services that match a pattern.
func matching(p wire.Pattern, services []wire.Service) (all []wire.Service) {
	for _, service := range services {
		if p.Matches(service) {
			all = append(all, service)
		}
	}
	return all
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
