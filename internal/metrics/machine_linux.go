package metrics

import "github.com/prometheus/procfs"

// readMachine reads /proc.
func readMachine() (sample, bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return sample{}, false
	}
	var s sample
	average, err := fs.LoadAvg()
	if err != nil {
		return sample{}, false
	}
	s.average = average.Load1
	memory, err := fs.Meminfo()
	if err != nil || memory.MemTotal == nil || memory.MemAvailable == nil || *memory.MemTotal == 0 {
		return sample{}, false
	}
	s.memory = 1 - float64(*memory.MemAvailable)/float64(*memory.MemTotal)
	stat, err := fs.Stat()
	if err != nil {
		return sample{}, false
	}
	c := stat.CPUTotal // guest time is part of user time
	s.busy = c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal
	s.total = s.busy + c.Idle + c.Iowait
	return s, true
}
