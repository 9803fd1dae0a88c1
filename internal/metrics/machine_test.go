package metrics

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachineLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := []sample{
			{busy: 100, total: 1000, average: 1.5, memory: 0.25},
			{busy: 130, total: 1040, average: 2, memory: 0.5},
			{busy: 129, total: 1040}, // counters of a virtual machine may step back
		}
		m := &Machine{read: func() (sample, bool) {
			if len(readings) == 0 {
				return sample{}, false
			}
			s := readings[0]
			readings = readings[1:]
			return s, true
		}}
		for n, tt := range []struct {
			wait time.Duration
			want Load
		}{
			{0, Load{Average: 1.5, Memory: 0.25}},
			{loadAge - 1, Load{Average: 1.5, Memory: 0.25}},
			{1, Load{CPU: 0.75, Average: 2, Memory: 0.5}},
			{loadAge, Load{}},
			{loadAge, Load{}}, // nothing can be read any more
		} {
			time.Sleep(tt.wait)
			if got := m.Load(); got != tt.want {
				t.Errorf("reading %d: got %+v, want %+v", n, got, tt.want)
			}
		}
	})
}

func TestReadMachine(t *testing.T) {
	s, ok := readMachine()
	if ok != (runtime.GOOS == "linux") {
		t.Fatalf("read: %v on %s", ok, runtime.GOOS)
	}
	if ok && (s.total <= 0 || s.busy > s.total || s.memory <= 0 || s.memory >= 1) {
		t.Errorf("implausible reading %+v", s)
	}
}
