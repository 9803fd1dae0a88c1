// Package opsv1 holds the wire types of Rollcall's own operator API,
// /rollcall/v1: what the server answers and the command line reads. All times
// are milliseconds since the Unix epoch, all durations milliseconds. Members whose
// value is empty, zero or false may be left out where their type says so.
package opsv1

// Error is the body of every answer that is not 2xx.
type Error struct {
	Error string `json:"error"` // a sentence for people
}

// Instance is one instance of a service.
type Instance struct {
	IP        string            `json:"ip"`
	Port      int32             `json:"port"`
	Cluster   string            `json:"cluster"`
	Weight    float64           `json:"weight"`
	Healthy   bool              `json:"healthy"`
	Enabled   bool              `json:"enabled"`
	Ephemeral bool              `json:"ephemeral"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// ChangedInstance is an instance in the history. Removals and changes of health
// have neither weight, enabled nor metadata.
type ChangedInstance struct {
	IP        string            `json:"ip"`
	Port      int32             `json:"port"`
	Cluster   string            `json:"cluster"`
	Healthy   bool              `json:"healthy"`
	Ephemeral bool              `json:"ephemeral"`
	Weight    *float64          `json:"weight,omitempty"`
	Enabled   *bool             `json:"enabled,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// Service names a service.
type Service struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	Service   string `json:"service"`
}

// ServiceSummary is one line of a list of services.
type ServiceSummary struct {
	Service
	Instances   int     `json:"instances"`
	Healthy     int     `json:"healthy"`
	Subscribers int     `json:"subscribers"`
	Threshold   float32 `json:"protectThreshold"`
	Held        bool    `json:"expiryHeld"` // the brake holds its expiry
}

// Services is the answer of GET /rollcall/v1/services.
type Services struct {
	Services []ServiceSummary `json:"services"`
	Total    int              `json:"total"` // on all pages
}

// Cause says who or what made a change.
type Cause struct {
	Text   string `json:"text"` // the whole cause for people
	Kind   string `json:"kind"`
	API    string `json:"api,omitempty"`
	Op     string `json:"op,omitempty"`
	From   string `json:"from,omitempty"` // address of the client
	Actor  string `json:"actor,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Event is one entry of the history.
type Event struct {
	Seq  uint64 `json:"seq"`
	Time int64  `json:"time"`
	Kind string `json:"kind"`
	Service
	// Instance is the state after the change.
	Instance *ChangedInstance `json:"instance,omitempty"`
	// Owner is whose registration changed: http, connection or durable.
	Owner    string `json:"owner,omitempty"`
	Client   string `json:"client,omitempty"` // the connection, for that owner
	Revision int64  `json:"revision,omitempty"`
	Cause    Cause  `json:"cause"`
	Detail   string `json:"detail,omitempty"`
	// Lost is the number of entries that the disk could not keep, for entries
	// that stand for a gap.
	Lost uint64 `json:"lost,omitempty"`
}

// History is the answer of GET /rollcall/v1/history.
type History struct {
	Events []Event `json:"events"`
	// Next is the cursor of the following page; 0 when there is none.
	Next uint64 `json:"next,omitempty"`
	// Damaged entries were met on disk and left out.
	Damaged int `json:"damaged,omitempty"`
}

// Owner is one party that keeps an instance alive.
type Owner struct {
	Kind    string `json:"kind"` // http, connection or durable
	Client  string `json:"client,omitempty"`
	Agent   string `json:"agent,omitempty"` // as the client names itself
	Healthy bool   `json:"healthy"`
}

// Override is what an operator laid over a registration.
type Override struct {
	Weight   *float64           `json:"weight,omitempty"`
	Enabled  *bool              `json:"enabled,omitempty"`
	App      *string            `json:"app,omitempty"`
	Metadata *map[string]string `json:"metadata,omitempty"`
}

// InstanceState is an instance with what keeps it alive.
type InstanceState struct {
	Instance
	Owners []Owner `json:"owners"`
	// SinceBeat is the age of the last beat; absent when no HTTP client owns it.
	SinceBeat *int64 `json:"sinceBeat,omitempty"`
	// ExpiresIn is the time until it is removed if no beat comes.
	ExpiresIn *int64    `json:"expiresIn,omitempty"`
	Override  *Override `json:"override,omitempty"`
}

// Instances is the answer of GET /rollcall/v1/instances.
type Instances struct {
	Service
	ExpiryHeld bool            `json:"expiryHeld"`
	Instances  []InstanceState `json:"instances"`
	Total      int             `json:"total"` // on all pages
}

// Candidate is one instance of a service and what a look-up makes of it.
type Candidate struct {
	InstanceState
	Kept    bool   `json:"kept"`
	Verdict string `json:"verdict"` // the rule that kept or dropped it
	// Shown is the health that the asker sees, which the protect threshold may
	// change.
	Shown bool `json:"shownHealthy"`
}

// Explanation is the answer of GET /rollcall/v1/explain.
type Explanation struct {
	Service
	Exists           bool    `json:"exists"`
	Disabled         bool    `json:"disabled,omitempty"`
	ProtectThreshold float32 `json:"protectThreshold"`
	Healthy          int     `json:"healthy"` // among all instances
	Total            int     `json:"total"`
	Protected        bool    `json:"protected"` // the threshold is reached
	ExpiryHeld       bool    `json:"expiryHeld"`
	Revision         int64   `json:"revision"`
	// Candidates are the instances of the service, or those with the address that
	// was asked about. Omitted counts those beyond the limit.
	Candidates []Candidate `json:"candidates"`
	Omitted    int         `json:"omitted,omitempty"`
	// Change is the event that made it so: the removal of an instance that is not
	// there, otherwise the latest change that look-ups see.
	Change *Event `json:"change,omitempty"`
	// History is the latest of the service, or of the instance that was asked
	// about, newest first. HistoryPartial: not all of what is kept was looked at.
	History        []Event `json:"history"`
	HistoryPartial bool    `json:"historyPartial,omitempty"`
	// Elsewhere names services in which the address, or services of the same name,
	// are, when they are not here.
	Elsewhere []Service `json:"elsewhere,omitempty"`
	// Subscribers are those of the service, and those who were pushed the change
	// and have left since.
	Subscribers []Subscriber `json:"subscribers"`
	// Summary answers the question in a few sentences.
	Summary string `json:"summary"`
}

// Subscription names a subscriber of a service.
type Subscription struct {
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
	Client   string `json:"client,omitempty"` // the connection
	Agent    string `json:"agent,omitempty"`  // as the client names itself
	Clusters string `json:"clusters,omitempty"`
}

// Subscriber is a client that is told of changes.
type Subscriber struct {
	Subscription
	// Since is when the subscription began.
	Since int64 `json:"since,omitempty"`
	// Gone: it subscribed when the change was pushed, and does no longer.
	Gone bool `json:"gone,omitempty"`
	// Refused says why it is never sent to.
	Refused string `json:"refused,omitempty"`
	// Acknowledged is the newest revision that it acknowledged, and Failed the
	// newest that could not be brought to it.
	Acknowledged int64 `json:"acknowledged,omitempty"`
	Failed       int64 `json:"failed,omitempty"`
	// Learned says how it stands with the change of the explanation.
	Learned Learned `json:"learned"`
}

// Learned is how far one subscriber is with one change.
type Learned struct {
	State LearnedState `json:"state"`
	// Time is when it acknowledged the change, or when that was given up. Took is
	// how long after the change an acknowledgement came.
	Time int64   `json:"time,omitempty"`
	Took float64 `json:"took,omitempty"`
	// Problem says why it was not told.
	Problem string `json:"problem,omitempty"`
}

// LearnedState says whether a subscriber knows of a change.
type LearnedState string

// The states of a subscriber with regard to a change.
const (
	Acknowledged LearnedState = "acknowledged"
	Waiting      LearnedState = "waiting" // it was not yet acknowledged
	Failed       LearnedState = "failed"
	Later        LearnedState = "subscribed later" // and read it with its look-up
	NeverPushed  LearnedState = "never pushed to"
	Unknown      LearnedState = "unknown" // there is no change, or no record of it
)

// Push is one entry of the history of pushes: how the state of a service came to
// a subscriber.
type Push struct {
	Seq  uint64 `json:"seq"`
	Time int64  `json:"time"`
	Kind string `json:"kind"` // acknowledged or push failed
	Service
	Revision   int64        `json:"revision"`
	Subscriber Subscription `json:"subscriber"`
	// Took is the time since the change that was pushed; absent when the push told
	// of none, such as the first one after a subscription.
	Took    float64 `json:"took,omitempty"`
	Problem string  `json:"problem,omitempty"`
	// Lost is the number of entries that the disk could not keep, for entries
	// that stand for a gap.
	Lost uint64 `json:"lost,omitempty"`
}

// Pushes is the answer of GET /rollcall/v1/pushes.
type Pushes struct {
	Pushes []Push `json:"pushes"`
	// Next is the cursor of the following page; 0 when there is none.
	Next uint64 `json:"next,omitempty"`
	// Damaged entries were met on disk and left out.
	Damaged int `json:"damaged,omitempty"`
}

// BackupInfo is the answer of a restore.
type BackupInfo struct {
	Index uint64 `json:"index"`
	ID    string `json:"id"`   // the member that made the backup
	Time  int64  `json:"time"` // when
}
