package load

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder holds the series of one run.
type Recorder struct {
	base  time.Time
	begin atomic.Int64 // what began before is not recorded

	mu     sync.Mutex
	series []*Series
}

// NewRecorder returns a recorder without series that records nothing until a loop
// has begun.
func NewRecorder() *Recorder {
	r := &Recorder{base: time.Now()}
	r.begin.Store(math.MaxInt64)
	return r
}

// Now returns the nanoseconds since the recorder was made, by the monotonic clock.
func (r *Recorder) Now() int64 { return int64(time.Since(r.base)) }

// Recording reports whether what begins now is recorded.
func (r *Recorder) Recording() bool { return r.Now() >= r.begin.Load() }

// Begin has everything recorded that begins from now on, for work that is not a
// loop.
func (r *Recorder) Begin() { r.start(r.Now()) }

func (r *Recorder) start(begin int64) { r.begin.Store(begin) }

// The histograms hold times from a nanosecond to two minutes, to three significant
// figures. A longer time counts as two minutes.
const (
	longest = int64(2 * time.Minute)
	figures = 3
)

// Series are times of one kind.
type Series struct {
	// Name says what is timed.
	Name   string
	rec    *Recorder
	shards []shard

	mu     sync.Mutex
	total  *hdrhistogram.Histogram // without what the shards hold
	latest *hdrhistogram.Histogram // scratch for rotate
	points []Point
}

// shard takes the times of some workers, so that they do not wait for each other.
type shard struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
	_    [48]byte
}

// Point is one interval of a series.
type Point struct {
	At, Length    time.Duration
	Count         int64
	P50, P99, Max time.Duration
}

// Series returns a new series, which is empty.
func (r *Recorder) Series(name string) *Series {
	s := r.Aside(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.series = append(r.series, s)
	return s
}

// Aside returns a new series that is recorded as any other, but is not among
// [Recorder.All] and has no intervals: for what is not of the server.
func (r *Recorder) Aside(name string) *Series {
	s := &Series{Name: name, rec: r, shards: make([]shard, runtime.GOMAXPROCS(0)), total: newHistogram(), latest: newHistogram()}
	for i := range s.shards {
		s.shards[i].hist = newHistogram()
	}
	return s
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, figures) }

// All returns the series in the order in which they were made.
func (r *Recorder) All() []*Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Series(nil), r.series...)
}

// Record takes a time from begun to ended, both by [Recorder.Now]. Any number tells
// which worker it is of.
func (s *Series) Record(worker int, begun, ended int64) {
	if begun < s.rec.begin.Load() {
		return
	}
	h := &s.shards[worker%len(s.shards)]
	h.mu.Lock()
	_ = h.hist.RecordValue(min(max(ended-begun, 0), longest)) // always within the range
	h.mu.Unlock()
}

// rotate ends an interval of all series.
func (r *Recorder) rotate(at, length time.Duration) {
	for _, s := range r.All() {
		s.rotate(at, length)
	}
}

func (s *Series) rotate(at, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest.Reset()
	s.collect(s.latest)
	s.points = append(s.points, Point{
		At: at, Length: length, Count: s.latest.TotalCount(),
		P50: time.Duration(s.latest.ValueAtPercentile(50)), P99: time.Duration(s.latest.ValueAtPercentile(99)),
		Max: time.Duration(s.latest.Max()),
	})
	s.total.Merge(s.latest)
}

// collect moves what the shards hold into h.
func (s *Series) collect(h *hdrhistogram.Histogram) {
	for i := range s.shards {
		d := &s.shards[i]
		d.mu.Lock()
		h.Merge(d.hist)
		d.hist.Reset()
		d.mu.Unlock()
	}
}

// Result returns all times of the series so far, and its intervals. The histogram is
// the caller's.
func (s *Series) Result() (*hdrhistogram.Histogram, []Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collect(s.total)
	h := newHistogram()
	h.Merge(s.total)
	return h, append([]Point(nil), s.points...)
}
