// Package disk keeps lists of services in files, and reads the failover switch, in the
// layout of Nacos clients, so that both kinds of clients of a mixed fleet and their
// operators' scripts find the same files:
//
//	<dir>/naming/<namespace>/<group@@service, URL-encoded>
//	<dir>/naming/<namespace>/failover00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00
//	<dir>/naming/<namespace>/failover/00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00
//	<dir>/naming/<namespace>/failover/<group@@service, URL-encoded>
//
// A list is the JSON that a server sent, in one line. The first place of the switch
// is that of clients of 0.9 and 1.x, who left out a separator, the second that of
// later ones.
//
// The types here start no goroutine; a [Dir] is immutable.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxFile bounds what is read, as the size of an answer is bounded.
const maxFile = 16 << 20

// Dir is a cache directory.
type Dir string

// namespace returns the directory of a namespace.
func (d Dir) namespace(ns string) string { return filepath.Join(string(d), "naming", encode(ns)) }

// encode writes a name as java.net.URLEncoder does, so that it is a file name too.
func encode(name string) string {
	name = strings.NewReplacer("%2A", "*", "~", "%7E").Replace(url.QueryEscape(name))
	if strings.Trim(name, ".") == "" {
		name = strings.ReplaceAll(name, ".", "%2E") // the directory itself or the one above
	}
	return name
}

func (d Dir) list(ns, group, service string) string {
	return filepath.Join(d.namespace(ns), encode(group+"@@"+service))
}

// Load returns the list of a service and when it was written. The error is
// fs.ErrNotExist if there is none.
func (d Dir) Load(ns, group, service string) (raw []byte, at time.Time, err error) {
	return read(d.list(ns, group, service))
}

func read(path string) (raw []byte, at time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	raw, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case len(raw) > maxFile:
		return nil, time.Time{}, fmt.Errorf("%s: above %d bytes", path, maxFile)
	}
	return bytes.TrimSpace(raw), info.ModTime(), nil
}

// Store replaces the list of a service, wholly or not at all.
func (d Dir) Store(ns, group, service string, raw []byte) (err error) {
	path := d.list(ns, group, service)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".list-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if _, err = temp.Write(oneLine(raw)); err != nil {
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// oneLine puts spaces for line breaks, which are outside of strings in JSON.
func oneLine(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	return bytes.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, raw)
}

// switchName is of Nacos: UtilAndComs.FAILOVER_SWITCH.
const switchName = "00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00"

// Switch is the state of the failover switch of a namespace.
type Switch struct {
	On bool
	// Written is when the switch was last written; it tells whether the data is to be
	// read again.
	Written time.Time
}

// Switch reads the failover switch. Without a file it is off.
func (d Dir) Switch(ns string) (Switch, error) {
	for _, path := range []string{
		filepath.Join(d.namespace(ns), "failover", switchName),
		filepath.Join(d.namespace(ns), "failover"+switchName),
	} {
		text, at, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Switch{}, err
		}
		return Switch{On: isOn(string(text)), Written: at}, nil
	}
	return Switch{}, nil
}

// isOn reads a switch: the last line that is 1 or 0 counts.
func isOn(text string) bool {
	on := false
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "1":
			on = true
		case "0":
			on = false
		}
	}
	return on
}

// Failover returns the list that stands for a service while the switch is on; the
// error is fs.ErrNotExist if there is none.
func (d Dir) Failover(ns, group, service string) (raw []byte, at time.Time, err error) {
	return read(filepath.Join(d.namespace(ns), "failover", encode(group+"@@"+service)))
}
