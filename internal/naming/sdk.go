package naming

import "strings"

// SDK is the library that a client is made with. The zero value is an unknown one.
type SDK struct {
	Name    string // such as java or go, in small letters
	Version string // as the library writes it, without a leading v; may be empty
}

// sdkNames lists how libraries name themselves, before a colon and the version.
// Source: reference http-api-v1 1.6 and grpc-and-v2-v3 2.2, and the SDKs.
var sdkNames = [...]struct{ prefix, name string }{
	{"Nacos-Java-Client", "java"},
	{"Nacos-SDK-Java", "java"},
	{"Nacos-Go-Client", "go"},
	{"nacos-go-sdk", "go"},
	{"Nacos-Python-Client", "python"},
	{"Nacos-Rust-Client", "rust"},
	{"Nacos-Node", "node"},
	{"Nacos-CSharp-Client", "csharp"},
	{"Nacos-C-Client", "c"},
	{"Nacos-CPP-Client", "cpp"},
	{"vip-client4cpp", "cpp"},
	{"Nacos-DNS", "dns"},
	{"Nacos-Server", "server"},
	{"unit-nginx", "tengine"},
}

// ParseSDK reads what a client calls itself, such as Nacos-Java-Client:v2.5.1. A
// name that is not known makes an unknown SDK.
func ParseSDK(agent string) SDK {
	for i := range sdkNames {
		rest, ok := strings.CutPrefix(agent, sdkNames[i].prefix)
		if !ok {
			continue
		}
		_, version, _ := strings.Cut(rest, ":")
		return SDK{sdkNames[i].name, strings.TrimPrefix(version, "v")}
	}
	return SDK{}
}

// String returns name and version with a blank between.
func (s SDK) String() string { return strings.TrimSpace(s.Name + " " + s.Version) }

// Series returns the first two numbers of the version, such as 2.5; empty when it
// does not begin with two numbers of up to three digits.
func (s SDK) Series() string {
	major, rest, ok := strings.Cut(s.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if !ok || !isNumber(major) || !isNumber(minor) {
		return ""
	}
	return major + "." + minor
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == ""
}
