package naming_test

import (
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
