package process

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, err := Read(os.Getpid())
	if err != nil || before.Resident < 1<<20 || before.CPU <= 0 {
		t.Fatalf("got %+v, %v", before, err)
	}
	for x := 1; ; x++ {
		if x%1_000_000 == 0 {
			if now, err := Read(os.Getpid()); err != nil || now.CPU > before.CPU {
				break
			}
		}
	}
	if _, err := Read(1 << 30); err == nil {
		t.Error("a process that is not there has a usage")
	}
	if Machine() == "" {
		t.Error("the machine has no name")
	}
}

// The time of threads that have ended counts.
func TestReadAfterThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	const busy = 200 * time.Millisecond
	before, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and never unlocked, so that the thread ends
		for spun := false; !spun; {
			now, err := Read(os.Getpid())
			spun = err != nil || now.CPU-before.CPU > busy
		}
	}()
	<-ended
	for range 100 {
		runtime.Gosched()
		if now, err := Read(os.Getpid()); err != nil || now.CPU-before.CPU < busy-20*time.Millisecond {
			t.Fatalf("after the thread has ended %v were used, not %v; %v", now.CPU-before.CPU, busy, err)
		}
	}
}

func TestListener(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	if pid, ok := Listener(port); pid != os.Getpid() || !ok {
		t.Errorf("got %d %t, want %d", pid, ok, os.Getpid())
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, ok := Listener(port); ok {
		t.Errorf("nobody listens any more, but %d", pid)
	}
}
