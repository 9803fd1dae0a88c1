package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// DiskError is a failed disk operation, told so that an operator knows which
// path it was and what to do about it.
type DiskError struct {
	Op   string // what was being done: "open", "write", "lock"
	Path string // the file or directory
	Err  error  // the cause; never nil
}

// Error says what failed, where, why, and the remedy when the cause is known.
func (e *DiskError) Error() string {
	cause := e.Err
	// The path is told once, by us.
	if pathErr, ok := cause.(*fs.PathError); ok && pathErr.Path == e.Path { //nolint:errorlint // only the outermost layer repeats our path
		cause = pathErr.Err
	}
	text := fmt.Sprintf("%s %s: %v", e.Op, e.Path, cause)
	if advice := remedy(e.Err); advice != "" {
		text += ": " + advice
	}
	return text
}

// Unwrap returns the cause.
func (e *DiskError) Unwrap() error { return e.Err }

// Explain wraps err as a [DiskError] about op on path. It returns nil for nil,
// and err itself when it already is one.
func Explain(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var disk *DiskError
	if errors.As(err, &disk) {
		return err
	}
	return &DiskError{Op: op, Path: path, Err: err}
}

// remedy returns what an operator can do about err, or "".
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "free some space on this disk, or move the data directory to a larger one"
	case errors.Is(err, syscall.EDQUOT):
		return "raise the disk quota of this user, or free some space"
	case errors.Is(err, syscall.EFBIG):
		return "raise the file size limit of this process (ulimit -f)"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only; mount it writable, or choose another data directory"
	case errors.Is(err, fs.ErrPermission):
		return "give this user read and write access, or choose another data directory"
	case errors.Is(err, syscall.EIO):
		return "the disk reports a fault; check it, and restore from a backup if data is lost"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n)"
	}
	return ""
}
