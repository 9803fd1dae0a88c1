package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// beatInterval is how often a client beats until the server says otherwise, and
	// notFound is what a server says of an instance that it does not know. Source:
	// reference http-api-v1 2.5.
	beatInterval = 5 * time.Second
	notFound     = 20404
	// leaveTime bounds the last call, when the command has been interrupted.
	leaveTime = 5 * time.Second
)

// beatBody is the state of an instance in a beat.
type beatBody struct {
	Service   string            `json:"serviceName"`
	Cluster   string            `json:"cluster"`
	IP        string            `json:"ip"`
	Port      json.Number       `json:"port"`
	Weight    float64           `json:"weight"`
	Metadata  map[string]string `json:"metadata"`
	Scheduled bool              `json:"scheduled"`
}

// keepBeating beats until ctx ends, and then deregisters. A server that is away
// for a while is told again when it is back.
func (c *client) keepBeating(ctx context.Context, r *registration) error {
	if !c.json {
		fmt.Fprintln(c.notes, "beating; interrupt to deregister")
	}
	for failing := false; ; {
		interval, err := c.beat(ctx, r)
		switch {
		case ctx.Err() != nil: // not the beat's fault
		case err != nil && !failing:
			fmt.Fprintf(c.notes, "a beat failed, going on: %v\n", err)
		case err == nil && failing:
			fmt.Fprintln(c.notes, "beats arrive again")
		}
		failing = err != nil
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return c.leave(ctx, r)
		case <-timer.C:
		}
	}
}

// beat sends one beat, registers the instance again if the server has forgotten
// it, and returns after how long the next one is due.
func (c *client) beat(ctx context.Context, r *registration) (next time.Duration, err error) {
	next = beatInterval
	state, err := json.Marshal(beatBody{
		Service: r.service.grouped(), Cluster: r.cluster, IP: r.instance.host, Port: json.Number(r.instance.port),
		Weight: r.weight, Metadata: r.metadata, Scheduled: true,
	})
	if err != nil {
		return next, err
	}
	q := r.target()
	q.Set("beat", string(state))
	body, err := c.do(ctx, http.MethodPut, instanceAPI+"/beat", q)
	if err != nil {
		return next, err
	}
	defer body.Close()
	var answer struct {
		Interval int64 `json:"clientBeatInterval"` // milliseconds
		Code     int   `json:"code"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return next, fmt.Errorf("read the answer to a beat: %w", err)
	}
	if answer.Code == notFound {
		if err := c.register(ctx, r); err != nil {
			return next, err
		}
	}
	if answer.Interval > 0 {
		next = time.Duration(answer.Interval) * time.Millisecond
	}
	return next, nil
}

// leave deregisters the instance of a command that was interrupted.
func (c *client) leave(ctx context.Context, r *registration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := c.callInstance(ctx, http.MethodDelete, r.target()); err != nil {
		return fmt.Errorf("%s was not deregistered, it goes for want of beats: %w", r.instance, err)
	}
	return c.say("deregistered", r)
}
