package compat

import (
	"testing"
	"time"
)

// tick is how often conditions are looked at.
const tick = 20 * time.Millisecond

// holds reports whether ok comes true within a time.
func holds(within time.Duration, ok func() bool) bool {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		<-ticker.C
	}
	return true
}

// eventually fails the test when ok does not come true within a time.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	if !holds(within, ok) {
		t.Fatalf("waited %s for %s", within, what)
	}
}

// throughout fails the test when ok stops being true during a time.
func throughout(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	if holds(d, func() bool { return !ok() }) {
		t.Fatalf("%s: no longer so", what)
	}
}
