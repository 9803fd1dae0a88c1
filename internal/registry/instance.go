package registry

import (
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
	// Beat holds the life times that the metadata asks for; nil means the
	// defaults. It is derived from Metadata by the store.
	Beat *BeatTimes `json:"-"`
	Port int32      `json:"port"`
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
}

// Key returns the identity of the instance, its address as registered.
func (i *Instance) Key() InstanceKey {
	return InstanceKey{IP: i.IP, Port: i.Port, Cluster: i.Cluster}
}

// AppendID appends the instance ID: ip#port#cluster#group@@service, or the
// number that the snowflake generator gave.
func (i *Instance) AppendID(b []byte, grouped string) []byte {
	if i.Serial > 0 {
		return strconv.AppendInt(b, int64(i.Serial-1), 10)
	}
	b = append(b, i.IP...)
	b = append(b, '#')
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, '#')
	b = append(b, i.Cluster...)
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
		a.Marked == b.Marked && a.HideID == b.HideID
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

// beatTimesOf reads the life times that m asks for, nil when it asks for none.
// As in the original only all-digit values count; anything else means the
// default, and so does 0.
func beatTimesOf(m Metadata) *BeatTimes {
	if !strings.Contains(string(m), `"preserved.`) {
		return nil
	}
	t := BeatTimes{
		Interval: preservedMillis(m, KeyBeatInterval),
		Timeout:  preservedMillis(m, KeyBeatTimeout),
		Delete:   preservedMillis(m, KeyDeleteTimeout),
	}
	if t == (BeatTimes{}) {
		return nil
	}
	return &t
}

func preservedMillis(m Metadata, key string) time.Duration {
	text, ok := m.Get(key)
	if !ok {
		return 0
	}
	ms, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(ms, uint64(maxBeatTime.Milliseconds()))) * time.Millisecond
}

// BeatInterval returns how often the instance means to beat.
func (i *Instance) BeatInterval() time.Duration {
	if i.Beat == nil || i.Beat.Interval == 0 {
		return DefaultBeatInterval
	}
	return i.Beat.Interval
}

// BeatTimeout returns the silence after which the instance is unhealthy.
func (i *Instance) BeatTimeout() time.Duration {
	if i.Beat == nil || i.Beat.Timeout == 0 {
		return DefaultBeatTimeout
	}
	return i.Beat.Timeout
}

// DeleteTimeout returns the silence after which the instance is removed.
func (i *Instance) DeleteTimeout() time.Duration {
	if i.Beat == nil || i.Beat.Delete == 0 {
		return DefaultDeleteTimeout
	}
	return i.Beat.Delete
}

// wantsSerial reports whether m asks for a snowflake ID.
func wantsSerial(m Metadata) bool {
	text, ok := m.Get(KeyIDGenerator)
	return ok && strings.EqualFold(text, "snowflake")
}
