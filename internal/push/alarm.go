package push

import (
	"container/heap"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// alarm is something that happens to a service at a time: its merge window ends,
// or a scheduled push to one subscriber is due.
type alarm struct {
	at      time.Time
	service *service
	// target is set for scheduled pushes.
	target  registry.SubscriberKey
	changed registry.Instant
}

// alarms is a heap, the earliest first.
type alarms []*alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(*alarm)) }

func (a *alarms) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return x
}

// set adds an alarm.
func (a *alarms) set(x *alarm) { heap.Push(a, x) }

// due removes and returns the earliest alarm that is not after now, nil when
// there is none.
func (a *alarms) due(now time.Time) *alarm {
	if len(*a) == 0 || (*a)[0].at.After(now) {
		return nil
	}
	return heap.Pop(a).(*alarm)
}
