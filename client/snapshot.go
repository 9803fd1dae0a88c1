package rollcall

import (
	"iter"
	"time"
)

// Source says where a [Snapshot] comes from.
type Source uint8

// The sources.
const (
	// FromNowhere is the source before anything is known.
	FromNowhere Source = iota
	// FromServer: a server told it and can be asked again.
	FromServer
	// FromDisk: no server could be asked yet; it is what the disk cache had.
	FromDisk
	// FromFailover: the failover switch is on.
	FromFailover
)

func (s Source) String() string {
	return [...]string{"nowhere", "server", "disk", "failover"}[min(s, FromFailover)]
}

// Snapshot is the state of a service at one moment. It is immutable.
type Snapshot struct {
	info      SnapshotInfo
	instances []*Instance
}

// SnapshotInfo is what a snapshot says besides its instances.
type SnapshotInfo struct {
	Service Service
	// Revision counts the changes that this client saw; it grows by at least 1
	// with each snapshot that differs, and starts anew with the client.
	Revision uint64
	Source   Source
	// Time is when the client got to know it.
	Time time.Time
	// Protected says that so few instances are healthy that the server shows all
	// of them as healthy, by the protect threshold of the service.
	Protected bool
	// HeldEmpty says that the server said the service is empty, and that these are
	// the instances from before; see [WithEmptyProtection].
	HeldEmpty bool
}

// NewSnapshot makes a snapshot. The client makes them itself; this is for tests
// and for own sources. The instances, in this order, must not be changed any more.
func NewSnapshot(info SnapshotInfo, instances ...*Instance) *Snapshot {
	return &Snapshot{info, instances}
}

// Info returns what the snapshot says besides its instances.
func (s *Snapshot) Info() SnapshotInfo { return s.info }

// Service returns the service, with the defaults of the client filled in.
func (s *Snapshot) Service() Service { return s.info.Service }

// Revision returns the number of the snapshot; see [SnapshotInfo].
func (s *Snapshot) Revision() uint64 { return s.info.Revision }

// Source returns where the snapshot comes from.
func (s *Snapshot) Source() Source { return s.info.Source }

// Time returns when the client got to know it.
func (s *Snapshot) Time() time.Time { return s.info.Time }

// Protected reports whether the protect threshold is reached; see [SnapshotInfo].
func (s *Snapshot) Protected() bool { return s.info.Protected }

// Len returns the number of instances, those included that may not be picked.
func (s *Snapshot) Len() int { return len(s.instances) }

// At returns an instance, 0 ≤ i < Len. They are sorted by address, port and
// cluster.
func (s *Snapshot) At(i int) *Instance { return s.instances[i] }

// All yields the instances in order.
func (s *Snapshot) All() iter.Seq[*Instance] {
	return func(yield func(*Instance) bool) {
		for _, in := range s.instances {
			if !yield(in) {
				return
			}
		}
	}
}
