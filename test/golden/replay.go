package golden

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"testing"
	"time"
)

// longWait is the wait from which a case counts as slow, in seconds. The shorter
// ones are there because the original applies writes after it has answered.
const longWait = 1

// Options say how cases are played.
type Options struct {
	// Except holds the ids of cases that are left out, with the reason.
	Except map[string]string
	// Serial plays one case after another, for cases that change the whole server.
	Serial bool
	// SkipSlow leaves out the cases that wait longer than a second.
	SkipSlow bool
	// ShortWaits keeps the waits of up to a second, which a server that applies
	// writes before it answers does not need.
	ShortWaits bool
}

// Replay plays all cases below root against the server at baseURL, such as
// http://127.0.0.1:8848, each in a subtest named by its id. Cases that wait
// longer than a second run in parallel subtests: they end after the caller's
// test function has returned, so the server must live until t's cleanup.
func Replay(t *testing.T, baseURL string, root fs.FS, opts Options) {
	t.Helper()
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" {
		t.Fatalf("%q is no base URL: %v", baseURL, err)
	}
	cases, err := Cases(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			if reason, left := opts.Except[c.ID]; left {
				t.Skip("differs on purpose: " + reason)
			}
			if c.slow() {
				if opts.SkipSlow {
					t.Skip("it waits longer than a second")
				}
				if !opts.Serial {
					t.Parallel()
				}
			}
			for _, difference := range c.play(t.Context(), base.Host, opts.ShortWaits) {
				t.Error(difference)
			}
		})
	}
}

func (c *Case) slow() bool {
	for _, s := range c.Steps {
		if s.Wait > longWait {
			return true
		}
	}
	return false
}

// play plays the steps of c against the server at address and returns all
// differences.
func (c *Case) play(ctx context.Context, address string, shortWaits bool) (found []string) {
	n := freshNames()
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Wait > longWait || shortWaits {
			if !sleep(ctx, time.Duration(s.Wait*float64(time.Second))) {
				return append(found, fmt.Sprintf("step %d: %v", i+1, context.Cause(ctx)))
			}
		}
		got := s.call(ctx, address, n)
		if s.Expect == nil {
			continue
		}
		for _, difference := range s.differences(got) {
			found = append(found, fmt.Sprintf("step %d %s %s: %s", i+1, s.Method, short(s.Path), difference))
		}
	}
	return found
}

// sleep waits for d or until ctx ends, and reports whether it was d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
