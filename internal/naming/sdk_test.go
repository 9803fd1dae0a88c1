package naming_test

import (
	"fmt"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/naming"
)

func TestParseSDK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ agent, text, series string }{
		{"Nacos-Java-Client:v2.5.1", "java 2.5.1", "2.5"},
		{"Nacos-Java-Client:v3.0.3", "java 3.0.3", "3.0"},
		{"Nacos-Java-Client:v3.1.0-bugfix", "java 3.1.0-bugfix", "3.1"},
		{"Nacos-Go-Client:v2.3.5", "go 2.3.5", "2.3"},
		{"nacos-go-sdk:v0.9.0", "go 0.9.0", "0.9"},
		{"Nacos-Python-Client:v3.2.0", "python 3.2.0", "3.2"},
		{"Nacos-Rust-Client:0.4.2", "rust 0.4.2", "0.4"},
		{"Nacos-C-Client:v1.0.12", "c 1.0.12", "1.0"},
		{"Nacos-CSharp-Client:v0.9.0", "csharp 0.9.0", "0.9"},
		{"Rollcall-Go-Client:v0.1.0", "rollcall-go 0.1.0", "0.1"},
		{"Nacos-Java-Client:v", "java", ""},
		{"Nacos-Java-Client", "java", ""},
		{"Nacos-Java-Client:v2", "java 2", ""},
		{"Nacos-Java-Client:vX.Y", "java X.Y", ""},
		{"Nacos-Java-Client:v2.1234567", "java 2.1234567", ""},
		{"curl/7", "", ""},
		{"", "", ""},
	} {
		sdk := naming.ParseSDK(tt.agent)
		if sdk.String() != tt.text || sdk.Series() != tt.series {
			t.Errorf("%q: got %q of series %q, want %q of %q", tt.agent, sdk, sdk.Series(), tt.text, tt.series)
		}
	}
}

func TestCountSDKs(t *testing.T) {
	t.Parallel()
	counts := map[string]int{
		"Nacos-Java-Client:v2.5.1": 3, "Nacos-Java-Client:v2.5.2": 4, "Nacos-Java-Client:v3.0.3": 1, "Nacos-Java-Client": 2,
		"Nacos-Go-Client:v2.3.3": 1, "curl/8": 1, "": 2, "made/up": 1,
	}
	const want = "[{go 2.3 1} {java 2.5 7} {java 3.0 1} {java other 2} {other other 4}]"
	if got := fmt.Sprint(naming.CountSDKs(counts)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := naming.CountSDKs(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestCountSDKsIsBounded: clients that make versions up make no more series than
// there are; the real ones stay.
func TestCountSDKsIsBounded(t *testing.T) {
	t.Parallel()
	counts := map[string]int{"Nacos-Java-Client:v2.5.1": 50}
	for n := range 1000 {
		counts[fmt.Sprintf("Nacos-Java-Client:v9.%d.0", n)] = 1
		counts[fmt.Sprintf("someone/%d", n)] = 1
	}
	got := naming.CountSDKs(counts)
	total, java25 := 0, 0
	for _, c := range got {
		total += c.Clients
		if c.Name == "java" && c.Series == "2.5" {
			java25 = c.Clients
		}
	}
	if len(got) > 18 || total != 2050 || java25 != 50 {
		t.Errorf("%d series of %d clients, %d of java 2.5; want at most 18 of 2050, and 50", len(got), total, java25)
	}
}
