package health

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/cli/config"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := config.New(DefaultConfig()); err != nil {
		t.Errorf("the settings cannot be given: %v", err)
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	cfg := Config{PauseGrace: -1, ProbeConcurrency: 5000, ProbeDeny: []netip.Prefix{{}}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, key := range []string{
		"health.pause-grace", "health.probe-concurrency", "health.probe-rate",
		"health.probe-timeout", "health.probe-min-interval", "health.probe-deny",
	} {
		if !strings.Contains(err.Error(), key+":") {
			t.Errorf("no word of %s in: %v", key, err)
		}
	}
}
