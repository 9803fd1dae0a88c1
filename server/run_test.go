package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// watchedPart is a part that takes a while to end, and notes when it has.
func watchedPart(name string, ended *[]string) part {
	return part{name, func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(time.Second)
		*ended = append(*ended, name) // one part ends before the next is told to
		return nil
	}}
}

func TestCrewStopsTheLastFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		c := newCrew()
		for _, name := range []string{"log", "history", "push", "HTTP"} {
			c.start(watchedPart(name, &ended))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.wait(ctx); err != nil {
			t.Errorf("wait: %v", err)
		}
		if err := c.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if want := []string{"HTTP", "push", "history", "log"}; !slices.Equal(ended, want) {
			t.Errorf("stopped in the order %v, want %v", ended, want)
		}
	})
}

// TestCrewTellsOfAFaultOnce: the faults are for an operator, who reads each as if
// it were another.
func TestCrewTellsOfAFaultOnce(t *testing.T) {
	full := errors.New("disk full")
	lasts := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, tt := range []struct {
		name string
		run  func(context.Context) error
		want string
	}{
		{"a part fails", func(context.Context) error { return full }, "history: disk full"},
		{"a part ends", func(context.Context) error { return nil }, "history ended by itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew()
				c.start(part{"log", lasts})
				c.start(part{"history", tt.run})
				c.start(part{"push", lasts})
				err := errors.Join(c.wait(t.Context()), c.stop())
				if err == nil || err.Error() != tt.want {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			})
		})
	}
}

// TestCrewTellsOfEachFault: parts that fail while they stop, and second ones that
// end by themselves, are told of too, each by its name.
func TestCrewTellsOfEachFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, gone := errors.New("disk full"), errors.New("socket gone")
		c := newCrew()
		c.start(part{"log", func(ctx context.Context) error { <-ctx.Done(); return full }})
		for i := range 100 { // more than anything has room for
			c.start(part{fmt.Sprint("part ", i), func(context.Context) error { return gone }})
		}
		synctest.Wait()
		err := errors.Join(c.wait(t.Context()), c.stop())
		if !errors.Is(err, full) || !errors.Is(err, gone) {
			t.Errorf("got %v, want both faults", err)
		}
		synctest.Wait()
	})
}
