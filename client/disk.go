package rollcall

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/disk"
	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// The times of files.
const (
	// writeDelay is how long changes of a service are gathered before its file is
	// written.
	writeDelay = time.Second
	// switchPeriod is how often the failover switch is looked at, as Nacos clients do.
	switchPeriod = 5 * time.Second
)

// diskCache is the files of a client. Without a directory its methods do nothing.
type diskCache struct {
	client *Client
	writer *schedule.Job
	looker *schedule.Job

	// writing is held while files are written, so that those of Close are the last.
	writing sync.Mutex

	// covering is held while switches are read and what belongs to them is put over
	// services, so that the last that was read is what counts. It is above entry.mu.
	covering sync.Mutex

	mu       sync.Mutex
	dirty    map[wire.Service][]byte // to be written
	failing  bool                    // the last write failed, and that was logged
	switches map[string]disk.Switch  // by namespace, of those that were asked for
}

func newDiskCache(c *Client) *diskCache {
	d := &diskCache{client: c, dirty: make(map[wire.Service][]byte), switches: make(map[string]disk.Switch)}
	d.writer = c.queue.Job(schedule.Normal, d.write)
	d.looker = c.queue.Job(schedule.Normal, d.look)
	return d
}

func (d *diskCache) start() {
	if d.client.cfg.failoverDir != "" {
		d.looker.Wake()
	}
}

// store keeps a list, some time.
func (d *diskCache) store(s wire.Service, raw []byte) {
	if d.client.cfg.diskDir == "" {
		return
	}
	d.mu.Lock()
	d.dirty[s] = raw
	d.mu.Unlock()
	d.writer.Within(writeDelay)
}

// write is the job of the writer.
func (d *diskCache) write(context.Context) time.Duration {
	d.flush()
	return schedule.Idle
}

// flush writes what is to be written. What fails is not tried again before it changes.
func (d *diskCache) flush() {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	dirty := d.dirty
	d.dirty = make(map[wire.Service][]byte)
	d.mu.Unlock()
	var failure error
	for s, raw := range dirty {
		if err := disk.Dir(d.client.cfg.diskDir).Store(s.Namespace, s.Group, s.Name, raw); err != nil {
			failure = err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if failure != nil && !d.failing {
		d.client.logger.Warn("the disk cache cannot be written", "err", failure)
	}
	d.failing = failure != nil
}

// load returns what the disk has of a service, if it is not too old.
func (d *diskCache) load(s wire.Service) (raw []byte, at time.Time, ok bool) {
	cfg := &d.client.cfg
	if cfg.diskDir == "" {
		return nil, time.Time{}, false
	}
	raw, at, err := disk.Dir(cfg.diskDir).Load(s.Namespace, s.Group, s.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.client.logger.Warn("the disk cache cannot be read", "err", err)
	}
	return raw, at, err == nil && (cfg.diskMaxAge <= 0 || time.Since(at) <= cfg.diskMaxAge)
}

// has reports whether load would return something.
func (d *diskCache) has(s wire.Service) bool {
	_, _, ok := d.load(s)
	return ok
}

// look reads the switches of all namespaces of which something was asked for, and puts
// what belongs to them over what is watched.
func (d *diskCache) look(context.Context) time.Duration {
	c := d.client
	d.covering.Lock()
	defer d.covering.Unlock()
	d.mu.Lock()
	namespaces := slices.Collect(maps.Keys(d.switches))
	d.mu.Unlock()
	changed := make(map[string]bool)
	for _, namespace := range namespaces {
		changed[namespace] = d.lookAt(namespace)
	}
	c.mu.Lock()
	entries := maps.Clone(c.entries)
	c.mu.Unlock()
	for s, e := range entries {
		if changed[s.Namespace] {
			e.override(d.failover(s))
		}
	}
	return switchPeriod
}

// cover puts over a service that begins to be watched what belongs there.
func (d *diskCache) cover(e *entry) {
	if d.client.cfg.failoverDir == "" {
		return
	}
	d.covering.Lock()
	defer d.covering.Unlock()
	e.override(d.failover(e.service))
}

// isOn reports whether the switch of a namespace is on. The first time it is read, then
// it is looked at now and then.
func (d *diskCache) isOn(namespace string) bool {
	d.mu.Lock()
	_, known := d.switches[namespace]
	d.mu.Unlock()
	if !known {
		d.lookAt(namespace)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.switches[namespace].On
}

// lookAt reads the switch of a namespace and reports whether it was written since.
func (d *diskCache) lookAt(namespace string) (changed bool) {
	now, err := disk.Dir(d.client.cfg.failoverDir).Switch(namespace)
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.switches[namespace]
	if err != nil {
		now = before // a switch that cannot be read stays where it was
	}
	d.switches[namespace] = now
	if now == before {
		return false
	}
	if now.On != before.On {
		d.client.logger.Warn("failover switch", "namespace", namespace, "on", now.On)
	}
	return true
}

// failover returns what stands for a service while the switch is on; nil if it is off,
// and if there is nothing for the service or an empty list: then what is live is
// better.
func (d *diskCache) failover(s wire.Service) *Snapshot {
	if d.client.cfg.failoverDir == "" || !d.isOn(s.Namespace) {
		return nil
	}
	raw, at, err := disk.Dir(d.client.cfg.failoverDir).Failover(s.Namespace, s.Group, s.Name)
	if err != nil {
		return nil
	}
	v, err := new(view).fromDisk(raw, at)
	if err != nil || len(v.instances) == 0 {
		return nil
	}
	return NewSnapshot(SnapshotInfo{Service: Service(s), Source: FromFailover, Time: at}, v.instances...)
}
