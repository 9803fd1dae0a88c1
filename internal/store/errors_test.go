package store

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	if err := Explain("write", "/data", nil); err != nil {
		t.Fatalf("Explain(nil) = %v", err)
	}
	tests := []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "write /data: no space left on device: free some space"},
		{syscall.EROFS, "write /data: read-only file system: the file system is read-only; mount it writable"},
		{&fs.PathError{Op: "open", Path: "/data", Err: syscall.EACCES}, "write /data: permission denied: give this user read and write access"},
		{&fs.PathError{Op: "open", Path: "/data/x", Err: syscall.EIO}, "write /data: open /data/x: input/output error: the disk reports a fault"},
		{errors.New("odd"), "write /data: odd"},
	}
	for _, test := range tests {
		err := Explain("write", "/data", test.err)
		if !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("got %q, want it to begin %q", err, test.want)
		}
		if !errors.Is(err, test.err) {
			t.Errorf("%v does not unwrap to its cause", err)
		}
		if again := Explain("open", "/elsewhere", err); again.Error() != err.Error() {
			t.Errorf("explained twice: %v", again)
		}
	}
}
