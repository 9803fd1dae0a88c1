package ops

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// summarize answers the question in a few sentences.
func summarize(q *question, e *opsv1.Explanation) string {
	var s sentences
	switch {
	case !e.Exists:
		s.add("There is no service %s in namespace %s.", q.key.Grouped(), e.Namespace)
		s.departure(e)
	case q.aboutOne() && len(e.Candidates) == 0:
		s.add("%s is not in %s.", q.address(), q.key.Grouped())
		s.departure(e)
	case q.aboutOne():
		s.members(q, e)
	default:
		s.service(q, e)
		s.latest("The latest change: ", e.Change)
	}
	s.learned(e)
	s.elsewhere(q, e)
	return strings.Join(s, " ")
}

type sentences []string

func (s *sentences) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// address is the instance that was asked about.
func (q *question) address() string {
	text := q.one.IP
	if q.one.Port != 0 {
		text = hostPort(q.one.IP, q.one.Port)
	}
	if q.one.Cluster != "" {
		text += " of cluster " + q.one.Cluster
	}
	return text
}

func hostPort(ip string, port int32) string {
	return net.JoinHostPort(strings.Trim(ip, "[]"), strconv.Itoa(int(port)))
}

// departure tells how what is not there went.
func (s *sentences) departure(e *opsv1.Explanation) {
	switch {
	case e.Change != nil:
		s.change("It", e.Change)
		if k := e.Change.Kind; k == string(registry.InstanceRegistered) || k == string(registry.ServiceCreated) {
			s.add("The history does not tell how it went.")
		}
	case e.HistoryPartial:
		s.add("The part of the history that was looked at has nothing of it.")
	default:
		s.add("The history has nothing of it: it was never here, or that is longer ago than the history reaches.")
	}
}

// members tells what a look-up makes of the instances that were asked about.
func (s *sentences) members(q *question, e *opsv1.Explanation) {
	if e.Disabled {
		s.add("%s is disabled and answers no look-ups.", q.key.Grouped())
	}
	for _, c := range e.Candidates {
		what := hostPort(c.IP, c.Port)
		if len(e.Candidates) > 1 {
			what += " of cluster " + c.Cluster
		}
		s.add("%s is in %s, and a look-up has it so: %s.", what, q.key.Grouped(), c.Verdict)
	}
	if len(e.Candidates) == 1 {
		s.kept(e.Candidates[0].Owners)
		s.change("It", e.Change)
	} else {
		s.latest("The latest change: ", e.Change)
	}
}

// kept tells of the connections that keep an instance alive.
func (s *sentences) kept(owners []opsv1.Owner) {
	for _, o := range owners {
		if o.Client == "" {
			continue
		}
		who := "a client that has not come back since the restart"
		if o.Agent != "" {
			who = o.Agent
		}
		s.add("The connection %s of %s keeps it.", o.Client, who)
	}
}

// service tells what a look-up makes of all instances.
func (s *sentences) service(q *question, e *opsv1.Explanation) {
	kept := 0
	for _, c := range e.Candidates {
		if c.Kept {
			kept++
		}
	}
	switch {
	case e.Disabled:
		s.add("%s is disabled and answers no look-ups.", q.key.Grouped())
	case e.Omitted > 0:
		s.add("A look-up of %s gives %d of the first %d instances of %d; %d are healthy.",
			q.key.Grouped(), kept, len(e.Candidates), e.Total, e.Healthy)
	default:
		s.add("A look-up of %s gives %d of %d instances; %d are healthy.", q.key.Grouped(), kept, e.Total, e.Healthy)
	}
	if e.Protected {
		s.add("The protect threshold %g is reached, so all are shown as healthy.", e.ProtectThreshold)
	}
	if e.ExpiryHeld {
		s.add("The brake holds the removal of silent instances.")
	}
}

// latest tells of an event, which may be nil, and what it is about.
func (s *sentences) latest(before string, e *opsv1.Event) {
	if e == nil {
		return
	}
	what := e.Group + registry.GroupSeparator + e.Service.Service
	if e.Instance != nil {
		what = hostPort(e.Instance.IP, e.Instance.Port)
	}
	s.change(before+what, e)
}

// change tells of an event, which may be nil.
func (s *sentences) change(what string, e *opsv1.Event) {
	if e == nil {
		return
	}
	why := e.Cause.Text
	if e.Client != "" {
		why += ", client " + e.Client
	}
	s.add("%s %s at %s (%s).", what, happened(e.Kind), stamp(e.Time), why)
}

// happened says in the past tense what an event is.
func happened(kind string) string {
	switch registry.EventKind(kind) {
	case registry.InstanceHealthy, registry.InstanceUnhealthy:
		return "became " + kind
	case registry.OwnerAdded:
		return "got another owner"
	case registry.OwnerRemoved:
		return "lost an owner"
	case registry.OverrideSet:
		return "was overridden"
	case registry.OverrideDropped:
		return "lost its override"
	case registry.ClusterUpdated:
		return "had a cluster updated"
	default:
		return "was " + strings.TrimPrefix(kind, "service ")
	}
}

// learned tells how many subscribers know of the change.
func (s *sentences) learned(e *opsv1.Explanation) {
	count := map[opsv1.LearnedState]int{}
	slowest, refusal := 0.0, ""
	for _, sub := range e.Subscribers {
		count[sub.Learned.State]++
		refusal = cmp.Or(refusal, sub.Refused)
		slowest = max(slowest, sub.Learned.Took)
	}
	acknowledged, failed := count[opsv1.Acknowledged], count[opsv1.Failed]
	if pushed := acknowledged + failed + count[opsv1.Waiting]; pushed > 0 {
		text := fmt.Sprintf("%d of %s acknowledged it", acknowledged, plural(pushed, "subscriber"))
		if slowest > 0 {
			text += fmt.Sprintf(", the last %v after it", time.Duration(slowest*float64(time.Millisecond)))
		}
		if failed > 0 {
			text += fmt.Sprintf(", %d could not be told", failed)
		}
		s.add("%s.", text)
	}
	if n := count[opsv1.NeverPushed]; n > 0 {
		s.add("%s never pushed to: %s.", plural(n, "subscriber is", "subscribers are"), refusal)
	}
}

// plural counts things; forms are the word for one and, if it does not end in s
// alone, the one for several.
func plural(n int, forms ...string) string {
	word := forms[0]
	if n != 1 {
		word += "s"
		if len(forms) > 1 {
			word = forms[1]
		}
	}
	return strconv.Itoa(n) + " " + word
}

func (s *sentences) elsewhere(q *question, e *opsv1.Explanation) {
	if len(e.Elsewhere) == 0 {
		return
	}
	var names []string
	for _, k := range e.Elsewhere {
		names = append(names, k.Group+registry.GroupSeparator+k.Service+" in namespace "+k.Namespace)
	}
	what := "Its name is"
	if q.aboutOne() {
		what = "Its address is"
	}
	s.add("%s elsewhere: %s.", what, strings.Join(names, ", "))
}

// stamp shows a time.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
