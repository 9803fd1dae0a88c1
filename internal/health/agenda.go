package health

import "container/heap"

// agenda holds the targets that wait for a probe, the next one first.
type agenda struct{ byDue dueHeap }

// put adds t, or moves it to where its due time says.
func (a *agenda) put(t *target) {
	if t.place == nowhere {
		heap.Push(&a.byDue, t)
	} else {
		heap.Fix(&a.byDue, t.place)
	}
}

// remove takes t out, if it is in.
func (a *agenda) remove(t *target) {
	if t.place != nowhere {
		heap.Remove(&a.byDue, t.place)
	}
}

// next returns the target that is due first, nil when there is none.
func (a *agenda) next() *target {
	if len(a.byDue) == 0 {
		return nil
	}
	return a.byDue[0]
}

// nowhere is the place of a target that is not in the agenda.
const nowhere = -1

// dueHeap implements [heap.Interface].
type dueHeap []*target

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *dueHeap) Push(x any) {
	t := x.(*target) // only agenda pushes, and only targets
	t.place = len(*h)
	*h = append(*h, t)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.place = nowhere
	return t
}
