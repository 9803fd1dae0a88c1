package registry

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Instance is one provider of a service as readers see it: what its latest
// owner registered, with an operator's override laid over it and its present
// health. It is immutable once it is in a [Store]; a change makes a new one.
type Instance struct {
	IP       string   `json:"ip"` // as registered; see [CanonicalIP] for identity
	Cluster  string   `json:"cluster"`
	App      string   `json:"app,omitempty"`
	Metadata Metadata `json:"metadata,omitempty"`
	// Weight is within 0 and 10000. 0 is listed and never chosen.
	Weight float64 `json:"weight"`
	// Rare holds what few instances have; nil for the others.
	Rare *Rare `json:"rare,omitzero"`
	Port int32 `json:"port"`
	// Serial is the number by which an instance with the snowflake ID generator
	// is known, or 0 when the ID is computed; see [Instance.ID].
	Serial    int32 `json:"serial,omitempty"`
	Healthy   bool  `json:"healthy"`
	Enabled   bool  `json:"enabled"`
	Ephemeral bool  `json:"ephemeral"`
	// Marked instances keep their health and are not expired (0.9 and 1.x).
	Marked bool `json:"marked,omitempty"`
	// HideID: registered through an API that shows no instance ID (v2 and v3 HTTP).
	HideID bool `json:"hideId,omitempty"`
	// Unclustered says how a client wrote that it names no cluster, which the
	// computed ID repeats (gRPC).
	Unclustered Unclustered `json:"unclustered,omitempty"`
}

// Rare is what few instances have.
type Rare struct {
	// ID is the one that the client chose; empty when it is computed.
	ID string `json:"id,omitempty"`
	// Beat are the life times that the metadata asks for. They are derived from it
	// by the store.
	Beat BeatTimes `json:"-"`
}

// IsZero reports whether there is nothing to write down: life times are derived.
func (r *Rare) IsZero() bool { return r == nil || r.ID == "" }

// rareOf returns what few instances have, nil for an instance without.
func rareOf(id string, m Metadata) *Rare {
	r := Rare{ID: id, Beat: beatTimesOf(m)}
	if r == (Rare{}) {
		return nil
	}
	kept := r // only what is kept is allocated
	return &kept
}

// OwnID returns the ID that the client chose; empty when it is computed.
func (i *Instance) OwnID() string {
	if i.Rare == nil {
		return ""
	}
	return i.Rare.ID
}

// BeatTimes returns the life times that the instance asks for.
func (i *Instance) BeatTimes() BeatTimes {
	if i.Rare == nil {
		return BeatTimes{}
	}
	return i.Rare.Beat
}

// Unclustered is how a client wrote that it names no cluster: Java sends null, Go
// an empty text. Both mean the cluster DEFAULT.
type Unclustered uint8

// The ways to name no cluster. The zero value is an instance with a cluster.
const (
	NullCluster Unclustered = iota + 1
	BlankCluster
)

// idCluster returns the cluster as it stands in the computed ID.
func (i *Instance) idCluster() string {
	switch i.Unclustered {
	case NullCluster:
		return "null"
	case BlankCluster:
		return ""
	default:
		return i.Cluster
	}
}

// Key returns the identity of the instance, its address as registered.
func (i *Instance) Key() InstanceKey {
	return InstanceKey{IP: i.IP, Port: i.Port, Cluster: i.Cluster}
}

// AppendID appends the instance ID: the client's own, the number that the
// snowflake generator gave, or else ip#port#cluster#group@@service.
func (i *Instance) AppendID(b []byte, grouped string) []byte {
	if own := i.OwnID(); own != "" {
		return append(b, own...)
	}
	if i.Serial > 0 {
		return strconv.AppendInt(b, int64(i.Serial-1), 10)
	}
	b = append(b, i.IP...)
	b = append(b, '#')
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, '#')
	b = append(b, i.idCluster()...)
	b = append(b, '#')
	return append(b, grouped...)
}

// ID returns what [Instance.AppendID] appends.
func (i *Instance) ID(grouped string) string { return string(i.AppendID(nil, grouped)) }

// sameRegistration reports whether a and b say the same to readers, health apart.
func sameRegistration(a, b *Instance) bool {
	return a.IP == b.IP && a.Port == b.Port && a.Cluster == b.Cluster &&
		a.App == b.App && a.Metadata == b.Metadata && a.Weight == b.Weight &&
		a.Enabled == b.Enabled && a.Ephemeral == b.Ephemeral &&
		a.Marked == b.Marked && a.HideID == b.HideID &&
		a.Unclustered == b.Unclustered && a.OwnID() == b.OwnID()
}

// The metadata keys by which an instance asks for its own life times, in
// milliseconds, and for its kind of ID.
const (
	KeyBeatInterval  = "preserved.heart.beat.interval"
	KeyBeatTimeout   = "preserved.heart.beat.timeout"
	KeyDeleteTimeout = "preserved.ip.delete.timeout"
	KeyIDGenerator   = "preserved.instance.id.generator"
)

// The life times of an ephemeral instance that asks for none of its own.
// Source: Nacos Constants.DEFAULT_HEART_BEAT_* and DEFAULT_IP_DELETE_TIMEOUT.
const (
	DefaultBeatInterval  = 5 * time.Second
	DefaultBeatTimeout   = 15 * time.Second
	DefaultDeleteTimeout = 30 * time.Second
)

// BeatTimes are the life times of one ephemeral instance. Zero fields mean the
// default.
type BeatTimes struct {
	// Interval is what the client is told to beat at; the switch
	// clientBeatInterval when zero.
	Interval time.Duration
	// Timeout without a beat makes the instance unhealthy.
	Timeout time.Duration
	// Delete without a beat removes it.
	Delete time.Duration
}

// maxBeatTime caps what metadata may ask for, so that sums cannot overflow.
const maxBeatTime = 365 * 24 * time.Hour

// beatTimesOf reads the life times that m asks for. As in the original only
// all-digit values count; anything else means the default, and so does 0.
func beatTimesOf(m Metadata) (t BeatTimes) {
	if !strings.Contains(string(m), `"preserved.`) {
		return t
	}
	for key, value := range m.All() {
		switch key {
		case KeyBeatInterval:
			t.Interval = preservedMillis(value)
		case KeyBeatTimeout:
			t.Timeout = preservedMillis(value)
		case KeyDeleteTimeout:
			t.Delete = preservedMillis(value)
		}
	}
	return t
}

func preservedMillis(text string) time.Duration {
	ms, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(ms, uint64(maxBeatTime.Milliseconds()))) * time.Millisecond
}

// BeatInterval returns how often the instance means to beat.
func (i *Instance) BeatInterval() time.Duration {
	return cmp.Or(i.BeatTimes().Interval, DefaultBeatInterval)
}

// BeatTimeout returns the silence after which the instance is unhealthy.
func (i *Instance) BeatTimeout() time.Duration {
	return cmp.Or(i.BeatTimes().Timeout, DefaultBeatTimeout)
}

// DeleteTimeout returns the silence after which the instance is removed.
func (i *Instance) DeleteTimeout() time.Duration {
	return cmp.Or(i.BeatTimes().Delete, DefaultDeleteTimeout)
}

// wantsSerial reports whether m asks for a snowflake ID.
func wantsSerial(m Metadata) bool {
	text, ok := m.Get(KeyIDGenerator)
	return ok && strings.EqualFold(text, "snowflake")
}
