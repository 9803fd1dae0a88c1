package registry

import (
	"net/netip"
	"strings"
	"time"
)

// Cause says who or what made a change and through which door. It is in every
// command and repeated in every event.
type Cause struct {
	// Kind is the class of cause.
	Kind CauseKind `json:"kind"`
	// API and Op name the call, such as "http-v1" and "register". Constants, so
	// that a cause costs no memory.
	API string `json:"api,omitempty"`
	Op  string `json:"op,omitempty"`
	// From is the client's address, when there is a client.
	From netip.Addr `json:"from,omitzero"`
	// Actor is the user who was logged in.
	Actor string `json:"actor,omitempty"`
	// Detail adds what the kind leaves open, such as "15s without a beat".
	Detail string `json:"detail,omitempty"`
}

// CauseKind is the class of a [Cause].
type CauseKind string

// The classes of causes.
const (
	CauseRequest    CauseKind = "request"           // a client's call
	CauseBeat       CauseKind = "beat"              // a beat revived it
	CauseBeatLost   CauseKind = "beat timeout"      // silence
	CauseProbe      CauseKind = "probe"             // a server-side check
	CauseDisconnect CauseKind = "connection closed" // a gRPC connection ended
	CauseRestart    CauseKind = "restart"           // remembered from before a restart
	CauseExpiry     CauseKind = "expiry"            // a subscription, an override or an empty service ran out
	CauseBrake      CauseKind = "brake"             // mass expiry held or released
	CauseRestore    CauseKind = "restore"           // a backup took the place of the durable state
)

// String renders the cause for people: "http-v1 register from 10.0.0.7".
func (c Cause) String() string {
	var b strings.Builder
	if c.Kind != CauseRequest {
		b.WriteString(string(c.Kind))
	}
	for _, part := range []string{c.API, c.Op} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(part)
	}
	if c.Actor != "" {
		b.WriteString(" by " + c.Actor)
	}
	if c.From.IsValid() {
		b.WriteString(" from " + c.From.String())
	}
	if c.Detail != "" {
		b.WriteString(": " + c.Detail)
	}
	return b.String()
}

// EventKind says what happened.
type EventKind string

// What can happen. Instance events carry the instance, service events none.
const (
	// InstanceRegistered: an instance that was not there is there.
	InstanceRegistered EventKind = "registered"
	// InstanceUpdated: what readers see of it changed, health apart.
	InstanceUpdated EventKind = "updated"
	// InstanceRenewed: it was registered again, or its health set again, with
	// nothing changed. Pushed, because clients of 1.x wait for it; not kept in
	// the history.
	InstanceRenewed EventKind = "renewed"
	// InstanceRemoved: its last owner went.
	InstanceRemoved EventKind = "removed"
	// InstanceHealthy and InstanceUnhealthy: its health flipped.
	InstanceHealthy   EventKind = "healthy"
	InstanceUnhealthy EventKind = "unhealthy"
	// OwnerAdded and OwnerRemoved: a second owner of an instance came or went.
	OwnerAdded   EventKind = "owner added"
	OwnerRemoved EventKind = "owner removed"
	// OverrideSet and OverrideDropped: an operator's override came or went.
	OverrideSet     EventKind = "override set"
	OverrideDropped EventKind = "override dropped"

	ServiceCreated EventKind = "service created"
	ServiceUpdated EventKind = "service updated"
	ServiceRemoved EventKind = "service removed"
	ClusterUpdated EventKind = "cluster updated"

	// ExpiryHeld and ExpiryReleased: the brake on mass expiry of a service.
	ExpiryHeld     EventKind = "expiry held"
	ExpiryReleased EventKind = "expiry released"

	Subscribed   EventKind = "subscribed"
	Unsubscribed EventKind = "unsubscribed"

	NamespaceCreated EventKind = "namespace created"
	NamespaceUpdated EventKind = "namespace updated"
	NamespaceRemoved EventKind = "namespace removed"
	SwitchSet        EventKind = "switch set"
)

// What becomes of pushes. These events are about a subscriber and come from those
// who send to it, not from the store: at most one of each kind for a revision.
const (
	// PushAcknowledged: a subscriber acknowledged the state of that revision.
	PushAcknowledged EventKind = "acknowledged"
	// PushFailed: it could not be brought to it; Detail says why.
	PushFailed EventKind = "push failed"
)

// Event is one change of state.
type Event struct {
	Kind    EventKind
	At      Instant
	Cause   Cause
	Service ServiceKey // zero for namespaces and switches
	// Instance is the state after the change, or the last one of an instance
	// that was removed; nil for events that are about none.
	Instance *Instance
	// Base is what the owner registered, before any override; set when an owner's
	// registration is the cause, so that a replay can repeat it.
	Base *Instance
	// Owner is whose registration changed, for instance events.
	Owner Owner
	// Revision of the service after the change; 0 when the change is not seen
	// in its view.
	Revision int64
	// Detail is the text of events that are about neither instance nor view: a
	// switch and its value, a namespace, a subscriber.
	Detail string
	// Subscriber is whom a push went to; nil for all other events. Took is the
	// time since the change that it tells of, 0 when it tells of none.
	Subscriber *Subscriber
	Took       time.Duration
}

// ChangesView reports whether subscribers of the service are told.
func (e *Event) ChangesView() bool {
	return e.Revision != 0 || e.Kind == InstanceRenewed
}

// Sink receives the events of a [Store].
type Sink interface {
	// Emit is called with a lock of the store held, once per event, in the order
	// in which the events of one service happened. It must not block, call the
	// store, or keep e after it returns; e.Instance may be kept.
	Emit(e *Event)
}
