package push

import (
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// service is a service that somebody subscribed to, with what is pending for it.
// It is guarded by the mutex of the [Pusher].
type service struct {
	key registry.ServiceKey
	// watched: somebody subscribes, as far as is known. joined counts the
	// subscriptions that ever began; left: one has ended since that was last
	// looked at.
	watched, left bool
	joined        uint32
	// busy: it waits in the queue, or a worker has it.
	busy     bool
	queuedAt time.Time
	// changes were made since the last push began, by so many commands; the first
	// of them at changed, the last at latest.
	changes, commands int
	changed, latest   registry.Instant
	// instances: one of the changes is of an instance, not of the settings alone.
	instances bool
	// window runs after a push, as long as its alarm is set; length is how long
	// it is, 0 for a quiet service.
	window *alarm
	length time.Duration
	// scheduled are the pushes to one subscriber that wait for their time, due
	// are those whose time has come.
	scheduled map[registry.SubscriberKey]*alarm
	due       []target
}

// target is one subscriber that is due a push.
type target struct {
	key     registry.SubscriberKey
	changed registry.Instant
}

// note adds a change; settings says that it is one of the service's settings.
func (s *service) note(at registry.Instant, settings bool) {
	if s.changes == 0 {
		s.changed = at
	}
	if s.changes == 0 || at != s.latest { // events of one command have its time
		s.commands++
	}
	s.latest = at
	s.changes++
	s.instances = s.instances || !settings
}

// takeChanges returns the changes and leaves none.
func (s *service) takeChanges() (changes, commands int, changed registry.Instant) {
	changes, commands, changed = s.changes, s.commands, s.changed
	s.changes, s.commands, s.changed, s.instances = 0, 0, registry.Instant{}, false
	return changes, commands, changed
}

// dirty reports whether all subscribers are to be told now.
func (s *service) dirty() bool { return s.changes > 0 && s.window == nil }

// actionable reports whether a worker has something to do.
func (s *service) actionable() bool { return s.dirty() || len(s.due) > 0 || s.left }

// over reports whether nobody watches and nothing is pending, so that the service
// can be forgotten.
func (s *service) over() bool {
	return !s.watched && s.changes == 0 && s.window == nil && len(s.due) == 0 && len(s.scheduled) == 0
}

// ring makes happen what an alarm was set for.
func (s *service) ring(a *alarm) {
	switch {
	case a == s.window:
		s.window = nil
		if s.changes == 0 {
			s.length = 0
		}
	case s.scheduled[a.target] == a: // else an earlier one took its place
		delete(s.scheduled, a.target)
		s.due = append(s.due, target{a.target, a.changed})
	}
}

// job is one push of a service.
type job struct {
	service *service
	// all subscribers are told, else only the targets.
	all bool
	// settings: nothing but settings of the service changed.
	settings          bool
	targets           []target
	changes, commands int
	changed           registry.Instant
	// left: whether anybody still subscribes is to be looked at; joined is what
	// it was then.
	left   bool
	joined uint32
	// late is how long the service waited for a worker.
	late time.Duration
}

// begin takes what is to be pushed now. It must come before the state is read.
func (s *service) begin(now time.Time) job {
	j := job{service: s, all: s.dirty(), targets: s.due, left: s.left, joined: s.joined, late: now.Sub(s.queuedAt)}
	s.due, s.left = nil, false
	if j.all {
		j.settings = !s.instances
		j.changes, j.commands, j.changed = s.takeChanges()
		return j
	}
	for _, t := range j.targets {
		if t.changed.Wall != 0 && (j.changed.Wall == 0 || t.changed.Lease < j.changed.Lease) {
			j.changed = t.changed
		}
	}
	return j
}
