// Package opsv1 holds the wire types of Rollcall's own operator API,
// /rollcall/v1: what the server answers and the command line reads. All times
// are milliseconds since the Unix epoch, all durations milliseconds.
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
	// Instance is the state after the change. Removals and changes of health
	// carry its identity and health alone.
	Instance *Instance `json:"instance,omitempty"`
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
	Kind    string `json:"kind"`
	Client  string `json:"client,omitempty"`
	Healthy bool   `json:"healthy"`
}

// Override is what an operator laid over a registration.
type Override struct {
	Weight   *float64           `json:"weight,omitempty"`
	Enabled  *bool              `json:"enabled,omitempty"`
	App      *string            `json:"app,omitempty"`
	Metadata *map[string]string `json:"metadata,omitempty"`
}

// Candidate is one instance of a service and what a look-up makes of it.
type Candidate struct {
	Instance
	Kept    bool   `json:"kept"`
	Verdict string `json:"verdict"` // the rule that kept or dropped it
	// Shown is the health that the asker sees, which the protect threshold may
	// change.
	Shown  bool    `json:"shownHealthy"`
	Owners []Owner `json:"owners"`
	// SinceBeat is the age of the last beat; absent when no HTTP client owns it.
	SinceBeat *int64 `json:"sinceBeat,omitempty"`
	// ExpiresIn is the time until it is removed if no beat comes.
	ExpiresIn *int64    `json:"expiresIn,omitempty"`
	Override  *Override `json:"override,omitempty"`
}

// Explanation is the answer of GET /rollcall/v1/explain.
type Explanation struct {
	Service
	Exists           bool        `json:"exists"`
	Disabled         bool        `json:"disabled,omitempty"`
	ProtectThreshold float32     `json:"protectThreshold"`
	Healthy          int         `json:"healthy"` // among the candidates
	Total            int         `json:"total"`
	Protected        bool        `json:"protected"` // the threshold is reached
	ExpiryHeld       bool        `json:"expiryHeld"`
	Revision         int64       `json:"revision"`
	Candidates       []Candidate `json:"candidates"`
	// History is the latest of the service, or of the asked instance, newest
	// first: why somebody is not among the candidates.
	History []Event `json:"history"`
	// Subscribers are those of the service.
	Subscribers []Subscriber `json:"subscribers"`
	// Summary answers the question in a sentence or two.
	Summary string `json:"summary"`
}

// Subscriber is a client that is told of changes.
type Subscriber struct {
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
	Client   string `json:"client,omitempty"`
	Agent    string `json:"agent"`
	Clusters string `json:"clusters,omitempty"`
	// Refused says why it is never sent to.
	Refused string `json:"refused,omitempty"`
}

// BackupInfo is the answer of a restore.
type BackupInfo struct {
	Index uint64 `json:"index"`
	ID    string `json:"id"`   // the member that made the backup
	Time  int64  `json:"time"` // when
}
