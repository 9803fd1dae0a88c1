package httpapi_test

import (
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

func TestParseAgent(t *testing.T) {
	type v = httpapi.Version
	tests := []struct {
		userAgent, clientVersion string
		kind                     httpapi.AgentKind
		version                  v
		grouped, push            bool
	}{
		// Seen in the wild (reference http-api-v1 1.6).
		{"Nacos-Java-Client:v1.4.8", "1.4.8", httpapi.JavaAgent, v{1, 4, 8}, true, true},
		{"Nacos-Java-Client:v1.0.0", "", httpapi.JavaAgent, v{1, 0, 0}, true, true}, // Node
		{"Nacos-Go-Client:v1.1.4", "", httpapi.GoAgent, v{1, 1, 4}, false, true},
		{"Nacos-Go-Client:v2.3.5", "Nacos-Go-Client:v2.3.5", httpapi.GoAgent, v{2, 3, 5}, false, true},
		{"Nacos-Python-Client:v1.0.0", "", httpapi.UnknownAgent, v{}, false, false},
		{"Nacos-CSharp-Client:v0.9.0", "", httpapi.CSharpAgent, v{0, 9, 0}, false, true},
		{"Nacos-CSharp-Client:v0.8.9", "", httpapi.CSharpAgent, v{0, 8, 9}, false, false},
		{"Nacos-DNS:v1.0.1", "", httpapi.DNSAgent, v{1, 0, 1}, false, true},
		{"Nacos-DNS:v0.4.0", "", httpapi.DNSAgent, v{0, 4, 0}, false, false},
		{"Nacos-C-Client:v1.0.12", "", httpapi.CAgent, v{1, 0, 12}, false, true},
		{"vip-client4cpp:v1.0.11", "", httpapi.CAgent, v{1, 0, 11}, false, false},
		{"Nacos-SDK-Java:v1.0.0", "", httpapi.JavaSDKAgent, v{1, 0, 0}, false, false},
		{"Nacos-Server:v1.4.8", "", httpapi.ServerAgent, v{1, 4, 8}, false, false},
		{"unit-nginx/1", "", httpapi.TengineAgent, v{}, false, false},
		{"curl/8.5.0", "", httpapi.UnknownAgent, v{}, false, false},
		{"nacos-java-client:v1.4.8", "", httpapi.UnknownAgent, v{}, false, false}, // case counts
		{"", "", httpapi.UnknownAgent, v{}, false, false},

		// The header that counts (live 1.4.8: put-agent-both, put-client-version).
		{"curl/7", "Nacos-Java-Client:v1.4.1", httpapi.UnknownAgent, v{}, false, false},
		{"", "Nacos-Java-Client:v1.4.1", httpapi.JavaAgent, v{1, 4, 1}, true, true},

		// The 0.9 age names itself in Client-Version beside its runtime's agent: it
		// is pushed to, and reads ungrouped names.
		{"Java/1.8.0_281", "Nacos-Java-Client:v0.9.0", httpapi.JavaAgent, v{0, 9, 0}, false, true},
		{"Java/1.8.0_281", "Nacos-Java-Client:0.9.0", httpapi.JavaAgent, v{0, 9, 0}, false, true},
		{"Java/17.0.15", "", httpapi.UnknownAgent, v{}, false, false},
		{"Go-http-client/1.1", "nacos-go-sdk:v0.9.0", httpapi.GoAgent, v{0, 9, 0}, false, true},
		// nacos-naming 1.1.2 for Node.
		{"Nacos-Java-Client", "Nacos-Java-Client:v0.1.0", httpapi.JavaAgent, v{0, 1, 0}, false, true},
		{"Nacos-Java-Client", "Nacos-Go-Client:v1.0.0", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:v0.9.0", "", httpapi.JavaAgent, v{0, 9, 0}, false, true},
		{"Nacos-Java-Client:v0.0.9", "", httpapi.JavaAgent, v{0, 0, 9}, false, false},

		// Versions that cannot be read are 0.0.0 and fail nothing (public report
		// alibaba/nacos#4987).
		{"Nacos-Java-Client", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:v", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:vABC", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:v1", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:v1.4", "", httpapi.JavaAgent, v{1, 4, 0}, true, true},
		{"Nacos-Java-Client:v1.4.1 extra", "", httpapi.JavaAgent, v{1, 4, 1}, true, true},
		{"Nacos-Java-Client:v1.4.1-SNAPSHOT", "", httpapi.JavaAgent, v{1, 4, 1}, true, true},
		{"Nacos-Java-Client:v99999999999999999999.1.1", "", httpapi.JavaAgent, v{}, false, false},
		{"Nacos-Java-Client:v1.4.é", "", httpapi.JavaAgent, v{1, 4, 0}, true, true},
		{strings.Repeat("x", 4096), "", httpapi.UnknownAgent, v{}, false, false},
	}
	for _, tt := range tests {
		a := httpapi.ParseAgent(tt.userAgent, tt.clientVersion)
		if a.Kind != tt.kind || a.Version != tt.version {
			t.Errorf("ParseAgent(%.40q, %q) = %+v, want kind %d version %v", tt.userAgent, tt.clientVersion, a, tt.kind, tt.version)
		}
		if got := a.GroupedNames(); got != tt.grouped {
			t.Errorf("ParseAgent(%.40q, %q).GroupedNames() = %v, want %v", tt.userAgent, tt.clientVersion, got, tt.grouped)
		}
		if got := a.PushEligible(httpapi.DefaultPushVersions()); got != tt.push {
			t.Errorf("ParseAgent(%.40q, %q).PushEligible() = %v, want %v", tt.userAgent, tt.clientVersion, got, tt.push)
		}
	}
}

func TestVersionLess(t *testing.T) {
	ascending := []string{"0.0.9", "0.9.0", "0.10.0", "1.0.0", "1.0.12", "1.1.0", "2.0.0"}
	for i, a := range ascending {
		for j, b := range ascending {
			va, _ := httpapi.ParseVersion(a)
			vb, _ := httpapi.ParseVersion(b)
			if got, want := va.Less(vb), i < j; got != want {
				t.Errorf("%s.Less(%s) = %v, want %v", a, b, got, want)
			}
		}
	}
}

func FuzzParseAgent(f *testing.F) {
	f.Add("Nacos-Java-Client:v1.4.8", "1.4.8")
	f.Add("Java/1.8.0_281", "Nacos-Java-Client:0.9.0")
	f.Add("Nacos-Go-Client:v1..", "\xff")
	f.Fuzz(func(t *testing.T, userAgent, clientVersion string) {
		a := httpapi.ParseAgent(userAgent, clientVersion)
		if v := a.Version; v.Major < 0 || v.Minor < 0 || v.Patch < 0 {
			t.Errorf("negative version %v", v)
		}
		if a.Kind == httpapi.UnknownAgent && (a.GroupedNames() || a.PushEligible(httpapi.PushVersions{})) {
			t.Error("an unknown agent is eligible for something")
		}
	})
}
