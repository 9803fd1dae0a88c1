package naming

import (
	"cmp"
	"slices"
	"strings"
)

// SDK is the library that a client is made with. The zero value is an unknown one.
type SDK struct {
	Name    string // such as java, go or rollcall-go, in small letters
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
	{"Rollcall-Go-Client", "rollcall-go"}, // over HTTP it goes by the name of the client of Nacos
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

// SDKCount is how many clients are made with an SDK of one series.
type SDKCount struct {
	// Name and Series are of small variety: unknown names, series that are not read,
	// and those beyond [maxSeries] are [OtherSDK].
	Name, Series string
	Clients      int
}

// maxSeries bounds the series of one SDK that are counted apart: those with the
// most clients. Clients say what they want.
const maxSeries = 16

// CountSDKs sums clients up by SDK and series. counts are by what they call
// themselves.
func CountSDKs(counts map[string]int) []SDKCount {
	bySDK := map[string]map[string]int{}
	for agent, n := range counts {
		sdk := ParseSDK(agent)
		name := cmp.Or(sdk.Name, OtherSDK)
		if bySDK[name] == nil {
			bySDK[name] = map[string]int{}
		}
		bySDK[name][cmp.Or(sdk.Series(), OtherSDK)] += n
	}
	var list []SDKCount
	for name, series := range bySDK {
		list = append(list, largest(name, series)...)
	}
	slices.SortFunc(list, func(a, b SDKCount) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Series, b.Series))
	})
	return list
}

// largest returns the series of an SDK that have the most clients, and the others
// as one.
func largest(name string, series map[string]int) []SDKCount {
	others := SDKCount{name, OtherSDK, series[OtherSDK]}
	delete(series, OtherSDK)
	var list []SDKCount
	for s, n := range series {
		list = append(list, SDKCount{name, s, n})
	}
	slices.SortFunc(list, func(a, b SDKCount) int {
		return cmp.Or(cmp.Compare(b.Clients, a.Clients), strings.Compare(a.Series, b.Series))
	})
	for len(list) > maxSeries {
		others.Clients += list[len(list)-1].Clients
		list = list[:len(list)-1]
	}
	if others.Clients > 0 {
		list = append(list, others)
	}
	return list
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == ""
}
