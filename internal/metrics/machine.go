package metrics

import (
	"sync"
	"time"
)

// Load is how busy the machine is.
type Load struct {
	// CPU is the share of the processors' time that was used between the two
	// latest readings, 0 to 1; 0 before the second.
	CPU float64
	// Average is the load average of one minute.
	Average float64
	// Memory is the share of the memory that is used, 0 to 1.
	Memory float64
}

// Machine reads how busy the machine is. On systems without /proc all figures are
// 0. It is safe for concurrent use.
type Machine struct {
	mu   sync.Mutex
	read func() (sample, bool)
	at   time.Time // of the latest reading
	last sample
	load Load
}

// sample is one reading.
type sample struct {
	busy, total     float64 // seconds of processor time since the machine started
	average, memory float64
}

// NewMachine returns a Machine that has read nothing yet.
func NewMachine() *Machine { return &Machine{read: readMachine} }

// loadAge is how long a reading is good. It also keeps the share of processor
// time from being that of a few milliseconds.
const loadAge = time.Second

// Load returns the figures of at most a second ago. It reads small files of the
// kernel, which takes well below a millisecond.
func (m *Machine) Load() Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.at.IsZero() && now.Sub(m.at) < loadAge {
		return m.load
	}
	s, ok := m.read()
	if !ok {
		return m.load
	}
	m.load = Load{Average: s.average, Memory: s.memory}
	if spent := s.total - m.last.total; !m.at.IsZero() && spent > 0 {
		m.load.CPU = min(max((s.busy-m.last.busy)/spent, 0), 1)
	}
	m.at, m.last = now, s
	return m.load
}
