package load

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerfd is an alarm of the kernel. The timers of Go are a millisecond late on a
// thread that waits for the network, which is more than most answers take.
type timerfd struct {
	fd   int
	file *os.File
	stop func() bool
	buf  [8]byte
}

// systemAlarm returns an alarm that is closed when ctx ends.
func systemAlarm(ctx context.Context) (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	t := &timerfd{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
	t.stop = context.AfterFunc(ctx, func() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) })
	return t, nil
}

func (t *timerfd) wait(d time.Duration) error {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if err := unix.TimerfdSettime(t.fd, 0, &at, nil); err != nil {
		return err
	}
	_, err := t.file.Read(t.buf[:])
	return err
}

func (t *timerfd) close() {
	t.stop()
	_ = t.file.Close()
}
