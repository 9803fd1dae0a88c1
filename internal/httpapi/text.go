package httpapi

import (
	"unicode"
	"unicode/utf8"
)

// CheckText returns a *ParamError if the value of the named parameter holds
// bytes that cannot be part of a name, a host or an id: control characters (NUL,
// line breaks and tabs among them, so that log lines cannot be forged), line and
// paragraph separators, and what was not valid UTF-8.
func CheckText(name, value string) error {
	for _, r := range value {
		if r >= ' ' && r < 0x7f {
			continue
		}
		switch {
		case r == utf8.RuneError:
			return &ParamError{Fault: ParamText, Name: name, Reason: "it must be valid UTF-8"}
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return &ParamError{Fault: ParamText, Name: name, Reason: "it can't have control characters"}
		}
	}
	return nil
}

// maxErrorText caps an error text, most of which repeats what was sent, in bytes.
const maxErrorText = 2 << 10

// ErrorText returns text, cut between two characters where it is longer than an
// answer should be.
func ErrorText(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	end := maxErrorText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
