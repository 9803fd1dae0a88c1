package registry

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The checks that 2.x and later make of the names in every call, with their
// sentences. An empty text passes: whether one is needed is for the call to say.
// The lengths are in characters. Source: Nacos ParamCheckRule; the sentences are
// recorded: v2-register-*-illegal, -long, -cjk.
//
// Beyond the original, no name may have control characters, and a service name
// must keep the rule from its first character on.

// CheckNamespaceV2 checks the ID of a namespace.
func CheckNamespaceV2(id string) error {
	return checkName("namespaceId/tenant", id, 64, wordOr("-_"))
}

// CheckNamespaceNameV2 checks the display name of a namespace.
func CheckNamespaceNameV2(name string) error {
	return checkName("namespaceShowName", name, 256, func(r rune) bool {
		return !unprintable(r) && !strings.ContainsRune("@#$%^&*", r)
	})
}

// CheckServiceNameV2 checks a service name without its group.
func CheckServiceNameV2(name string) error {
	if strings.HasPrefix(name, "@") || strings.Contains(name, GroupSeparator) {
		return illegalCharacters("serviceName", name)
	}
	return checkName("serviceName", name, 512, plain)
}

// CheckGroupV2 checks the name of a group.
func CheckGroupV2(name string) error { return checkName("group", name, 128, wordOr("-_:.")) }

// CheckClusterV2 checks the name of a cluster. What it lets pass may still be no
// name for a new cluster; see [CheckCluster].
func CheckClusterV2(name string) error { return checkName("cluster", name, 64, wordOr("-_")) }

// CheckIPV2 checks an address or a host name.
func CheckIPV2(ip string) error { return checkName("ip", ip, maxIP, plain) }

// CheckPortV2 checks the text of a port.
func CheckPortV2(port string) error {
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseInt(port, 10, 32); err != nil || n < 0 || n > 65535 {
		return Refuse(RefusedName, "port", port, "Param 'port' is illegal, the value should be between 0 and 65535.")
	}
	return nil
}

// CheckServiceV2 checks the names of a service.
func CheckServiceV2(key ServiceKey) error {
	if key.Name == "" {
		return illegalCharacters("serviceName", key.Name)
	}
	if err := CheckNamespaceV2(key.Namespace); err != nil {
		return err
	}
	if err := CheckServiceNameV2(key.Name); err != nil {
		return err
	}
	return CheckGroupV2(key.Group)
}

// CheckBeatTimes refuses metadata that asks for the instance to be given up, or
// removed, before its next beat is due.
func CheckBeatTimes(m Metadata) error {
	i := Instance{Rare: rareOf("", m)}
	if interval := i.BeatInterval(); i.BeatTimeout() < interval || i.DeleteTimeout() < interval {
		return Refuse(InvalidBeatTimes, "metadata", "",
			"Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'.")
	}
	return nil
}

func checkName(param, name string, most int, legal func(rune) bool) error {
	if len(name) > most && utf8.RuneCountInString(name) > most {
		return Refuse(RefusedName, param, name,
			"Param '%s' is illegal, the param length should not exceed %d.", param, most)
	}
	for _, r := range name {
		if !legal(r) {
			return illegalCharacters(param, name)
		}
	}
	return nil
}

func illegalCharacters(param, name string) error {
	return Refuse(RefusedName, param, name,
		"Param '%s' is illegal, illegal characters should not appear in the param.", param)
}

// wordOr allows ASCII digits, letters and the given others.
func wordOr(others string) func(rune) bool {
	return func(r rune) bool {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune(others, r)
	}
}

// plain allows what is neither white space nor CJK nor unprintable.
func plain(r rune) bool {
	return r > ' ' && r < utf8.RuneSelf && r != 0x7f ||
		r >= utf8.RuneSelf && !unprintable(r) && !unicode.IsSpace(r) && (r < 0x4e00 || r > 0x9fa5)
}

// unprintable reports what would break a log line, and what was no UTF-8.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}
