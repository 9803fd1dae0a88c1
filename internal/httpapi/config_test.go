package httpapi_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

func TestConfigValidate(t *testing.T) {
	if err := httpapi.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	noContext := httpapi.DefaultConfig()
	noContext.ContextPath = ""
	if err := noContext.Validate(); err != nil {
		t.Errorf("no context path: %v", err)
	}
	bad := httpapi.Config{
		ContextPath:    "nacos/",
		MaxConns:       -1,
		MaxConnsPerIP:  -1,
		GzipMinBytes:   -1,
		MaxBodyMemory:  -1,
		ProxyProtocol:  true,
		TrustedProxies: []netip.Prefix{},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a config full of faults is valid")
	}
	for _, fault := range []string{
		"context path", "max header bytes", "max body bytes", "max body memory", "header timeout", "body timeout",
		"write timeout", "idle timeout", "drain timeout", "max connections -1", "max connections per address", "gzip minimum", "trusted proxies",
	} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("no fault about %q in:\n%v", fault, err)
		}
	}
	if _, err := httpapi.New(bad, nil, nil); err == nil {
		t.Error("New takes a bad config")
	}
}
