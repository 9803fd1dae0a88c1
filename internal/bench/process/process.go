// Package process reads what a process of this machine uses, and finds the process
// that listens at an address, from /proc. Where there is none, nothing is known. All
// functions are safe for concurrent use.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process uses at a moment.
type Usage struct {
	// Resident is its memory, in bytes.
	Resident int64
	// CPU is the processor time that it has used since it began, in its own code and
	// in the kernel, to a hundredth of a second at least.
	CPU time.Duration
}

// Read returns the usage of a process.
func Read(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	u := Usage{Resident: int64(stat.ResidentMemory()), CPU: time.Duration(stat.CPUTime() * float64(time.Second))}
	// The scheduler counts in nanoseconds, where stat has hundredths of a second; but
	// only stat has the time of threads that have ended, of which a JVM has many.
	if exact, err := scheduled(pid); err == nil {
		u.CPU = max(u.CPU, exact)
	}
	return u, nil
}

// scheduled adds up the processor time of the threads that a process has now.
func scheduled(pid int) (time.Duration, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	var sum uint64
	for _, t := range threads {
		s, err := t.Schedstat()
		if err != nil {
			return 0, err
		}
		sum += s.RunningNanoseconds
	}
	return time.Duration(sum), nil
}

// listening is the state of a socket in /proc/net/tcp.
const listening = 0x0a

// Listener returns the process that listens on a TCP port of this machine and that
// we may look at.
func Listener(port uint16) (pid int, ok bool) {
	inodes := listeners(port)
	if len(inodes) == 0 {
		return 0, false
	}
	procs, err := procfs.AllProcs()
	if err != nil {
		return 0, false
	}
	for _, p := range procs {
		links, err := p.FileDescriptorTargets()
		if err != nil {
			continue // another's
		}
		for _, link := range links {
			if inode, is := strings.CutPrefix(link, "socket:["); is && inodes[strings.TrimSuffix(inode, "]")] {
				return p.PID, true
			}
		}
	}
	return 0, false
}

// listeners returns the inodes of the sockets that listen on a port.
func listeners(port uint16) map[string]bool {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	inodes := map[string]bool{}
	//nolint:staticcheck // what is said to be better asks the kernel by netlink, for one look at a small table
	for _, read := range []func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6} {
		table, err := read()
		if err != nil {
			continue
		}
		for _, line := range table {
			if line.St == listening && line.LocalPort == uint64(port) {
				inodes[strconv.FormatUint(line.Inode, 10)] = true
			}
		}
	}
	return inodes
}

// Machine says what processor this machine has and how many.
func Machine() string {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	cpus, err := fs.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s, %d cores", strings.TrimSpace(cpus[0].ModelName), len(cpus))
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		text += ", Linux " + strings.TrimSpace(string(kernel))
	}
	return text
}

// Program says what a process runs: the name of its file, and when that is the file
// of this program also its version and commit. It is empty where that cannot be seen.
// Those of other Go programs could be read from their files, but what reads them would
// make this one half a megabyte larger.
func Program(pid int) string {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	file, err := os.Readlink(exe)
	if err != nil {
		return ""
	}
	name := filepath.Base(file)
	theirs, err := os.Stat(exe) // there even if the file is not any more
	if err != nil {
		return name
	}
	own, err := os.Stat("/proc/self/exe")
	info, ok := debug.ReadBuildInfo()
	if err != nil || !ok || !os.SameFile(theirs, own) {
		return name
	}
	text := name + " " + info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= shownRevision:
			text += ", commit " + s.Value[:shownRevision]
		case s.Key == "vcs.modified" && s.Value == "true":
			text += " with changes"
		}
	}
	return strings.TrimSpace(text) + ", " + info.GoVersion
}

// shownRevision is how many digits of a commit are shown.
const shownRevision = 12

// Self is the number of our own process.
func Self() int { return os.Getpid() }
