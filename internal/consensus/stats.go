package consensus

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// Stats are the figures of a log at one moment, for metrics. All are zero
// before Ready.
type Stats struct {
	Leader   bool
	Term     uint64
	Applied  uint64 // index of the last entry that the state machine holds
	Last     uint64 // index of the last entry on the disk
	InFlight int    // proposals that wait for their commit
	Healthy  bool   // the last write to the disk succeeded

	LogEntries uint64 // on the disk, those behind the newest snapshot included
	LogBytes   int64  // size of the log file; it is reused inside and does not shrink

	SnapshotIndex uint64    // 0: none yet
	SnapshotTime  time.Time // when it was finished
	SnapshotBytes int64

	Writes    uint64        // writes to the log since the start; each ends with a sync
	WriteTime time.Duration // that they took together
}

// Stats returns the present figures. It reads the log's first and last key,
// so it is for a scrape, not for a request path.
func (l *Log) Stats() Stats {
	n, leave, err := l.enter()
	if err != nil {
		return Stats{}
	}
	defer leave()
	s := Stats{
		Leader:    n.raft.State() == raft.Leader,
		Term:      n.raft.CurrentTerm(),
		Applied:   l.fsm.applied.Load(),
		Last:      n.raft.LastIndex(),
		InFlight:  len(l.slots),
		Healthy:   l.disk.get() == nil,
		LogBytes:  n.logs.size(),
		Writes:    n.logs.writes.Load(),
		WriteTime: time.Duration(n.logs.writeTime.Load()),
	}
	first, errFirst := n.logs.FirstIndex()
	last, errLast := n.logs.LastIndex()
	if errFirst == nil && errLast == nil && last > 0 {
		s.LogEntries = last - first + 1
	}
	if info := n.snaps.last.Load(); info != nil {
		s.SnapshotIndex, s.SnapshotTime, s.SnapshotBytes = info.index, info.time, info.size
	}
	return s
}

// Compact takes a snapshot now and drops the entries it makes superfluous. The
// log does so by itself every Config.SnapshotEvery entries; an operator may
// want it sooner. It blocks until the snapshot is on the disk.
func (l *Log) Compact() error {
	n, leave, err := l.enter()
	if err != nil {
		return err
	}
	defer leave()
	err = n.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}
