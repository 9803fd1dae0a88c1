package registry

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bound what one registration may hold.
type Limits struct {
	// Metadata is the largest number of characters in the keys and values of one
	// instance's metadata. The original's 1,024 is too small for Dubbo and its kin.
	Metadata int
}

// The longest names, in characters. Source: Nacos' parameter checker, but for
// groups and services: 1.x takes names of 2,000 characters and more (recorded:
// reg-name-long), so that limit only keeps names from being a way to fill memory.
const (
	maxNamespace = 128 // 1.x lets a namespace of that length be created
	maxName      = 4096
	maxCluster   = 64
	maxIP        = 128
)

// CheckServiceV1 reports whether 1.x would create the service: group@@service
// of digits, letters and @ . : _ -. That both parts are there is for the caller to
// see, as each API says it in its own words.
func CheckServiceV1(key ServiceKey) error {
	if err := checkLengths(key); err != nil {
		return err
	}
	grouped := key.Grouped()
	if !only(grouped, "@.:_-") {
		return Refuse(InvalidServiceName, "serviceName", grouped,
			"dom name can only have these characters: 0-9a-zA-Z-._:, current: %s", grouped)
	}
	return nil
}

func checkLengths(key ServiceKey) error {
	for _, f := range []struct {
		param, value string
		max          int
	}{
		{"namespaceId", key.Namespace, maxNamespace},
		{"groupName", key.Group, maxName},
		{"serviceName", key.Name, maxName},
	} {
		if n := utf8.RuneCountInString(f.value); n > f.max {
			return Refuse(InvalidArgument, f.param, f.value,
				"Param '%s' is illegal, it has %d characters and may have %d.", f.param, n, f.max)
		}
	}
	if i := strings.IndexFunc(key.Namespace, unseen); i >= 0 {
		return Refuse(InvalidArgument, "namespaceId", key.Namespace, "Param 'namespaceId' is illegal, it has a character that cannot be seen.")
	}
	return nil
}

// unseen reports whether r is a control character or one that only formats, such
// as a zero-width space: lists and logs would show another text than is stored.
func unseen(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// CheckCluster reports whether a cluster of that name may be made.
func CheckCluster(name string) error {
	if !only(name, "-") {
		return Refuse(InvalidClusterName, "clusterName", name,
			"cluster name can only have these characters: 0-9a-zA-Z-, current: %s", name)
	}
	if n := utf8.RuneCountInString(name); n > maxCluster {
		return Refuse(InvalidArgument, "clusterName", name,
			"Param 'clusterName' is illegal, it has %d characters and may have %d.", n, maxCluster)
	}
	return nil
}

// maxProbeText is the longest text in a probe's settings, in characters.
const maxProbeText = 1024

// CheckProbe refuses cluster settings that no probe could work with: a port
// outside 1 to 65535, and texts that are over-long or have control characters,
// which would end up in requests to instances.
func CheckProbe(c *Cluster) error {
	if c.CheckPort < 1 || c.CheckPort > math.MaxUint16 {
		return Refuse(InvalidArgument, "checkPort", "", "Param 'checkPort' is illegal, it must be within 1 and 65535.")
	}
	for _, text := range []string{
		c.Checker.Path, c.Checker.Headers, c.Checker.User, c.Checker.Password, c.Checker.Command,
	} {
		if n := utf8.RuneCountInString(text); n > maxProbeText {
			return Refuse(InvalidArgument, "healthChecker", "",
				"Param 'healthChecker' is illegal, it has a text of %d characters, which may have %d.", n, maxProbeText)
		}
		if strings.IndexFunc(text, unicode.IsControl) >= 0 {
			return Refuse(InvalidArgument, "healthChecker", "", "Param 'healthChecker' is illegal, it has a control character.")
		}
	}
	return nil
}

// only reports whether s consists of ASCII digits, letters and the given others.
func only(s, others string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

// maxWeight is the largest weight. Source: Nacos Constants.MAX_WEIGHT_VALUE.
const (
	maxWeight = 10000
	minWeight = 0.01 // a smaller positive weight is raised to this, as in 1.x
)

// CheckWeight refuses weights outside 0 to 10000, NaN among them.
func CheckWeight(w float64) error {
	if math.IsNaN(w) || w < 0 || w > maxWeight {
		return Refuse(InvalidWeight, "weight", "", "instance format invalid: The weights range from 0.0 to 10000.0")
	}
	return nil
}

// ClampWeight raises a positive weight below the smallest one to it.
func ClampWeight(w float64) float64 {
	if w > 0 && w < minWeight {
		return minWeight
	}
	return w
}

// FitWeight brings a weight into the range that [CheckWeight] accepts. NaN stays.
func FitWeight(w float64) float64 { return min(max(w, 0), maxWeight) }

// CheckIP refuses what can be no address or host name: blank text, white space,
// control characters, and CJK.
func CheckIP(ip string) error {
	if ip == "" {
		return Refuse(InvalidArgument, "ip", ip, "Param 'ip' is required.")
	}
	if n := utf8.RuneCountInString(ip); n > maxIP {
		return Refuse(InvalidArgument, "ip", ip, "Param 'ip' is illegal, it has %d characters and may have %d.", n, maxIP)
	}
	for _, r := range ip {
		if unicode.IsSpace(r) || unseen(r) || (r >= 0x4e00 && r <= 0x9fa5) || r == utf8.RuneError {
			return Refuse(InvalidArgument, "ip", ip, "Param 'ip' is illegal, %q may not be in an address or host name.", r)
		}
	}
	return nil
}

// CheckMetadata keeps the limit on metadata.
func (l Limits) CheckMetadata(m Metadata) error {
	if l.Metadata <= 0 || len(m) <= l.Metadata {
		return nil
	}
	if n := m.Len(); n > l.Metadata {
		return Refuse(MetadataTooLarge, "metadata", strconv.Itoa(l.Metadata),
			"Param 'metadata' is illegal, its keys and values have %d characters and may have %d.", n, l.Metadata)
	}
	return nil
}
