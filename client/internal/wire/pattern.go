package wire

import "strings"

// Matches reports whether a service fits the pattern.
func (p Pattern) Matches(s Service) bool {
	return s.Namespace == p.Namespace && fits(p.Group, s.Group) && fits(p.Name, s.Name)
}

// fits reports whether a text fits a pattern in which * stands for any text.
func fits(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		part, more, another := strings.Cut(rest, "*")
		if !another {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
		rest = more
	}
	return false
}
