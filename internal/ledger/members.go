package ledger

import (
	"encoding/json"
	"strconv"
	"strings"
)

// members walks over the members of one JSON object. Lines come by the hundred
// thousand when the registry is rebuilt, and three quarters of the time of a
// general parser went into values that this one need not look at twice; see
// docs/decisions/0004-ledger.md. It accepts what the encoder of this package
// writes, plus members that it does not know, and never reads beyond the text.
type members struct {
	rest string // what follows the last member
	key  string // as it is in the text, without quotes
	raw  string // the value, as it is in the text
	bad  bool   // the text is no such object
}

func membersOf(object string) members {
	rest, ok := strings.CutPrefix(object, "{")
	if rest == "}" {
		rest = ""
	}
	return members{rest: rest, bad: !ok}
}

// next moves on to the next member. It returns false at the end of the object, and
// where the text makes no sense.
func (m *members) next() bool {
	if m.rest == "" || m.bad {
		return false
	}
	m.bad = true
	keyEnd := stringEnd(m.rest, 0)
	if keyEnd < 0 || keyEnd == len(m.rest) || m.rest[keyEnd] != ':' {
		return false
	}
	end := valueEnd(m.rest, keyEnd+1)
	if end <= keyEnd+1 || end == len(m.rest) {
		return false
	}
	m.key, m.raw = m.rest[1:keyEnd-1], m.rest[keyEnd+1:end]
	switch {
	case m.rest[end] == ',' && end+1 < len(m.rest):
		m.rest = m.rest[end+1:]
	case m.rest[end] == '}' && end+1 == len(m.rest):
		m.rest = ""
	default:
		return false
	}
	m.bad = false
	return true
}

// stringEnd returns the index behind the string that begins at s[i], or -1.
func stringEnd(s string, i int) int {
	if i >= len(s) || s[i] != '"' {
		return -1
	}
	n := strings.IndexByte(s[i+1:], '"')
	if n < 0 {
		return -1
	}
	end := i + 1 + n
	if s[end-1] != '\\' {
		return end + 1
	}
	for i++; i < len(s); i++ { // that quote may be escaped: count the backslashes
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// valueEnd returns the index behind the value that begins at s[i], or -1.
func valueEnd(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			if i = stringEnd(s, i); i < 0 || depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // behind a number or a word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// text returns the value if it is a string, else nothing.
func (m *members) text() string {
	if m.raw[0] != '"' {
		return ""
	}
	if strings.IndexByte(m.raw, '\\') < 0 {
		return m.raw[1 : len(m.raw)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(m.raw), &s); err != nil {
		return ""
	}
	return s
}

// integer returns the value if it is a whole number within 64 bits, else 0.
func (m *members) integer() int64 {
	n, err := strconv.ParseInt(m.raw, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// integer32 returns the value if it is a whole number within 32 bits, else 0.
func (m *members) integer32() int32 {
	n, err := strconv.ParseInt(m.raw, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// flag reports whether the value is 1.
func (m *members) flag() bool { return m.raw == "1" }

// float returns the value if it is a finite number, else 0.
func (m *members) float() float64 {
	if m.flag() {
		return 1
	}
	f, err := strconv.ParseFloat(m.raw, 64)
	if err != nil || f-f != 0 {
		return 0
	}
	return f
}
