package httpapi

import "strings"

// AgentKind is the family of a client, told from its User-Agent or
// Client-Version header.
type AgentKind uint8

// The kinds that Nacos 1.4 tells apart; every other client is UnknownAgent.
const (
	UnknownAgent AgentKind = iota
	JavaAgent
	DNSAgent
	CAgent
	JavaSDKAgent
	ServerAgent // a member of a Nacos cluster
	TengineAgent
	GoAgent
	CSharpAgent
)

// agentPrefixes lists how each kind begins; case counts. "nacos-go-sdk" is the
// Go client of the 0.9 age. Source: reference http-api-v1 1.6.
var agentPrefixes = [...]struct {
	prefix string
	kind   AgentKind
}{
	{"Nacos-Java-Client", JavaAgent},
	{"Nacos-DNS", DNSAgent},
	{"Nacos-C-Client", CAgent},
	{"vip-client4cpp", CAgent},
	{"Nacos-SDK-Java", JavaSDKAgent},
	{"Nacos-Server", ServerAgent},
	{"unit-nginx", TengineAgent},
	{"Nacos-Go-Client", GoAgent},
	{"nacos-go-sdk", GoAgent},
	{"Nacos-CSharp-Client", CSharpAgent},
}

// Agent is what a client says it is. The zero value is an unknown client.
type Agent struct {
	Kind    AgentKind
	Version Version
}

// ParseAgent reads an agent from the two headers. User-Agent counts if it is
// there. Clients of the 0.9 age name themselves in Client-Version only, beside
// the User-Agent of their runtime ("Java/1.8.0_281"), and nacos-naming 1.x for Node
// sends the bare name as User-Agent; so Client-Version also counts when User-Agent
// is a runtime's, or when Client-Version is the same name with a version. An
// unreadable version is 0.0.0.
func ParseAgent(userAgent, clientVersion string) Agent {
	text := agentText(userAgent, clientVersion)
	for i := range agentPrefixes {
		if rest, ok := strings.CutPrefix(text, agentPrefixes[i].prefix); ok {
			return Agent{Kind: agentPrefixes[i].kind, Version: agentVersion(rest)}
		}
	}
	return Agent{}
}

// agentText returns the header that names the client.
func agentText(userAgent, clientVersion string) string {
	if userAgent == "" || clientVersion != "" && runtimeAgent(userAgent) {
		return clientVersion
	}
	if rest, ok := strings.CutPrefix(clientVersion, userAgent); ok && strings.HasPrefix(rest, ":") {
		return clientVersion
	}
	return userAgent
}

// runtimeAgent reports whether ua is what an HTTP library sends of itself.
func runtimeAgent(ua string) bool {
	return strings.HasPrefix(ua, "Java/") || strings.HasPrefix(ua, "Go-http-client/")
}

// agentVersion reads the version after ":v", or after ":" as some clients of
// the 0.9 age write it.
func agentVersion(rest string) Version {
	if _, v, ok := strings.Cut(rest, ":v"); ok {
		version, _ := ParseVersion(v)
		return version
	}
	_, v, _ := strings.Cut(rest, ":")
	version, _ := ParseVersion(v)
	return version
}

// groupedSince is the first Java version that reads grouped service names.
var groupedSince = Version{Major: 1}

// GroupedNames reports whether list answers and pushes to this client carry
// group@@service in dom and hosts[].serviceName, and whether its PUT of an
// instance is a strict update: Java clients of 1.0.0 and later.
func (a Agent) GroupedNames() bool {
	return a.Kind == JavaAgent && !a.Version.Less(groupedSince)
}

// PushVersions are the lowest versions of each kind that are pushed to over
// UDP; the operator can change all but the last.
type PushVersions struct {
	Java, DNS, C, Go, CSharp Version
}

// DefaultPushVersions returns the values of Nacos 1.4.8 (the switches
// pushJavaVersion, pushPythonVersion, which is DNS, pushCVersion, pushGoVersion
// and pushCSharpVersion).
func DefaultPushVersions() PushVersions {
	return PushVersions{
		Java:   Version{0, 1, 0},
		DNS:    Version{0, 4, 3},
		C:      Version{1, 0, 12},
		Go:     Version{0, 1, 0},
		CSharp: Version{0, 9, 0},
	}
}

// ParsePushVersions reads the lowest versions from texts as the switches hold
// them. A text that is no version is 0.0.0, which every client reaches.
func ParsePushVersions(java, dns, c, golang, csharp string) PushVersions {
	version := func(text string) Version {
		v, _ := ParseVersion(text)
		return v
	}
	return PushVersions{
		Java: version(java), DNS: version(dns), C: version(c), Go: version(golang), CSharp: version(csharp),
	}
}

// PushEligible reports whether this client understands UDP pushes.
func (a Agent) PushEligible(lowest PushVersions) bool {
	switch a.Kind {
	case JavaAgent:
		return !a.Version.Less(lowest.Java)
	case DNSAgent:
		return !a.Version.Less(lowest.DNS)
	case CAgent:
		return !a.Version.Less(lowest.C)
	case GoAgent:
		return !a.Version.Less(lowest.Go)
	case CSharpAgent:
		return !a.Version.Less(lowest.CSharp)
	default:
		return false
	}
}

// Version is the three numbers by which client versions are compared.
type Version struct {
	Major, Minor, Patch int
}

// versionLimit caps each number of a Version, so that a long run of digits
// cannot overflow.
const versionLimit = 1_000_000

// ParseVersion reads major.minor.patch, separated by any of ". - _ / ; :". Each
// part counts up to its first non-digit; the patch may be missing. ok is false,
// and the version 0.0.0, if there is no minor part or a number is too large.
func ParseVersion(s string) (v Version, ok bool) {
	var parts [3]int
	n := 0
	for rest := s; n < len(parts) && rest != ""; n++ {
		part := rest
		if i := strings.IndexAny(rest, ".-_/;:"); i >= 0 {
			part, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		for i := 0; i < len(part) && part[i] >= '0' && part[i] <= '9'; i++ {
			if parts[n] = parts[n]*10 + int(part[i]-'0'); parts[n] > versionLimit {
				return Version{}, false
			}
		}
	}
	if n < 2 {
		return Version{}, false
	}
	return Version{parts[0], parts[1], parts[2]}, true
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}
