package grpc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// differ tells how a frame differs from the recorded one.
func (r *replay) differ(m *Message, got *frame) (list []string) {
	if m.Event != "" {
		want, _, _ := strings.Cut(m.Status, ":")
		if have := statusName(got); have != want {
			return []string{fmt.Sprintf("got %s %s, want %s", got.Type, have, m.Status)}
		}
		return nil
	}
	if got.Err != nil || got.Type != m.Type {
		return []string{fmt.Sprintf("got %s %s %v, want %s", got.Type, short(got.body), got.Err, m.Type)}
	}
	if placeholder, ok := m.member("connectionId").(string); ok && strings.HasPrefix(placeholder, "{conn-") {
		object, _ := got.body.(map[string]any)
		r.fill[placeholder] = fmt.Sprint(object["connectionId"])
	}
	list = r.compare.differences(m.Body, got.body, "", "")
	if len(got.Headers) != len(m.Headers) {
		list = append(list, fmt.Sprintf("headers %v, want %v", got.Headers, m.Headers))
	}
	if m.ClientIP == "{server-ip}" && got.ClientIP == "" || m.ClientIP != "{server-ip}" && got.ClientIP != m.ClientIP {
		list = append(list, fmt.Sprintf("clientIp is %q, want %s", got.ClientIP, m.ClientIP))
	}
	return list
}

// statusName is how recordings write a status.
func statusName(f *frame) string {
	if f.Err == nil {
		return "message"
	}
	name := grpctest.StatusOf(f.Err)
	if name == "Canceled" {
		return "CANCELLED"
	}
	var b strings.Builder
	for n, c := range name {
		if n > 0 && 'A' <= c && c <= 'Z' && name != "OK" {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToUpper(b.String())
}

// next returns the next frame of a connection, nil when none comes in time. Pushes
// about something else than wanted are held back; wanted "" is anything.
func (r *replay) next(c *connection, until time.Time, wanted string) *frame {
	suits := func(f *frame) bool {
		return f.Type != grpcv2.NotifySubscriber || wanted == "" || subject(f.Type, f.body) == wanted
	}
	if n := slices.IndexFunc(c.held, suits); n >= 0 {
		f := c.held[n]
		c.held = slices.Delete(c.held, n, n+1)
		return f
	}
	if c.stream == nil {
		time.Sleep(time.Until(until))
		return nil
	}
	timer := time.NewTimer(max(time.Until(until), time.Millisecond))
	defer timer.Stop()
	for {
		select {
		case came := <-c.stream.Frames():
			f := r.frame(came)
			if id := requestIDOf(f); id != "" {
				if c.ids[id] {
					r.differences = append(r.differences, fmt.Sprintf("%s: requestId %q came before", f.Type, id))
				}
				c.ids[id] = true
			}
			if suits(f) {
				return f
			}
			c.held = append(c.held, f)
		case <-timer.C:
			return nil
		}
	}
}

// expect waits for what the server is to do.
func (r *replay) expect(n int, m *Message) []string {
	c, topic := r.connections[m.Conn], subject(m.Type, m.Body)
	if m.Stream == "unary" {
		return r.differ(m, c.answer)
	}
	before, known := c.state[topic]
	var other []string
	for until, patient := r.deadline(n, m), false; ; {
		f := r.next(c, until, topic)
		switch {
		case f != nil:
		case r.mayBeMissing(n, m, topic, before, known):
			return nil
		case !patient:
			until, patient = until.Add(patience), true
			continue
		case other == nil:
			return []string{"did not come in time"}
		default:
			return other
		}
		differences := r.differ(m, f)
		switch {
		case len(differences) == 0:
			return r.accept(m, f, c, topic)
		case f.Type == grpcv2.NotifySubscriber && subject(f.Type, f.body) == topic:
			c.state[topic], other = r.compare.content(f.body), differences
			if r.acked[m.requestID()] {
				r.acknowledge(c, f, "NotifySubscriberResponse")
			}
		case !r.harmless(c, f):
			return differences
		}
	}
}

// accept takes a frame that is as recorded.
func (r *replay) accept(m *Message, f *frame, c *connection, topic string) []string {
	c.state[topic] = r.compare.content(f.body)
	if id := m.requestID(); id != "" {
		r.received[id] = receipt{f, m.at()}
		c.acking = r.acked[id]
	}
	if idle := f.arrived.Sub(c.lastSent); m.Type == grpcv2.ClientDetection && (idle < probeAfter || idle > probeBefore) {
		return []string{fmt.Sprintf("came %v after the last activity", idle)}
	}
	return nil
}

// mayBeMissing reports whether a frame that did not come need not have.
func (r *replay) mayBeMissing(n int, m *Message, topic, before string, known bool) bool {
	if again, ok := r.repeats[n]; ok || m.Type != grpcv2.NotifySubscriber {
		return ok && !again.first
	}
	now, came := r.connections[m.Conn].state[topic]
	if !came {
		return false
	}
	if now == r.compare.content(m.Body) {
		return true
	}
	if known && now == before {
		return false
	}
	for _, x := range r.script.Messages[n+1:] {
		if !x.passive() {
			return false
		}
		if x.isFrame() && x.Conn == m.Conn && subject(x.Type, x.Body) == topic && r.compare.content(x.Body) == now {
			return true
		}
	}
	return false
}

// deadline returns until when a frame must come.
func (r *replay) deadline(n int, m *Message) time.Time {
	until := r.due(m).Add(late)
	later := func(t time.Time) {
		if t.After(until) {
			until = t
		}
	}
	if again := r.repeats[n]; again.first {
		if got, ok := r.received[again.of]; ok {
			later(got.frame.arrived.Add(repeatWithin))
		}
	}
	for name, c := range r.connections { // is a silent client the cause?
		last := time.Duration(-1)
		for _, x := range r.script.Messages[:n] {
			if x.Conn == name && x.Dir == "client" {
				last = x.at()
			}
		}
		if c.closed || last < 0 || m.at()-last < probeAfter {
			continue
		}
		if m.Type == grpcv2.ClientDetection {
			later(c.lastSent.Add(probeBefore))
		} else {
			later(c.lastSent.Add(probeBefore + eviction))
		}
	}
	return until
}

// harmless reports whether a frame that nobody waits for is a repeat of the last
// push, or a probe that is then answered.
func (r *replay) harmless(c *connection, f *frame) bool {
	topic := subject(f.Type, f.body)
	if state, known := c.state[topic]; slices.Contains(repeated, f.Type) && known && state == r.compare.content(f.body) {
		if c.acking && f.Type == grpcv2.NotifySubscriber {
			r.acknowledge(c, f, "NotifySubscriberResponse")
		}
		return true
	}
	if f.Type == grpcv2.ClientDetection && f.arrived.Sub(c.lastSent) >= probeAfter {
		r.acknowledge(c, f, "ClientDetectionResponse")
		return true
	}
	return false
}

// observe waits where nothing was seen to happen.
func (r *replay) observe(m *Message) (list []string) {
	c := r.connections[m.Conn]
	if m.Event != "silence" || c == nil {
		return nil
	}
	for f := r.next(c, r.due(m), ""); f != nil; f = r.next(c, r.due(m), "") {
		if !r.harmless(c, f) {
			list = append(list, fmt.Sprintf("got %s %s %v", f.Type, short(f.body), f.Err))
			if f.Err != nil {
				return list
			}
		}
	}
	return list
}

// checkRest looks for frames that came and that nobody waited for.
func (r *replay) checkRest() {
	for name, c := range r.connections {
		if c.closed {
			continue
		}
		for f := r.next(c, time.Now(), ""); f != nil; f = r.next(c, time.Now(), "") {
			if !slices.Contains(repeated, f.Type) && !r.harmless(c, f) {
				r.differences = append(r.differences, fmt.Sprintf("%s at the end: unexpected %s %v", name, f.Type, f.Err))
			}
			if f.Err != nil {
				break
			}
		}
	}
}
