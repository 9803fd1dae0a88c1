package httpapi_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/cli/config"
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
		ContextPath:     "nacos/",
		MaxConns:        -1,
		MaxConnsPerIP:   -1,
		GzipMinBytes:    -1,
		MaxBodyMemory:   -1,
		MaxAnswerMemory: -1,
		ProxyProtocol:   true,
		TrustedProxies:  []netip.Prefix{},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a config full of faults is valid")
	}
	for _, key := range []string{
		"context-path", "max-header", "max-body", "max-body-memory", "max-answer-memory", "header-timeout", "body-timeout", "write-timeout", "idle-timeout",
		"drain-timeout", "max-connections", "max-connections-per-address", "gzip-min", "proxy-protocol",
	} {
		if !strings.Contains("\n"+err.Error(), "\nhttp."+key+": ") {
			t.Errorf("no fault of %s in:\n%v", key, err)
		}
	}
	if _, err := httpapi.New(bad, nil, nil); err == nil {
		t.Error("New takes a bad config")
	}
}

func TestConfigIsReadable(t *testing.T) {
	if _, err := config.New(httpapi.DefaultConfig()); err != nil {
		t.Error(err)
	}
}
