package grpcv2

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped reads the rest of a string in quotes that began at from and has an
// escape at r.at.
func (r *reader) escaped(from int) string {
	b := append([]byte(nil), r.data[from:r.at]...)
	for r.at < len(r.data) {
		c := r.data[r.at]
		r.at++
		switch {
		case c == '"':
			if !utf8.Valid(b) {
				r.fail(errNotUTF8)
				return ""
			}
			return alias(b)
		case c == '\\':
			b = r.escape(b)
		case c < ' ':
			r.fail(errSyntax)
			return ""
		default:
			b = append(b, c)
		}
	}
	r.fail(errSyntax)
	return ""
}

// escape appends what the escape behind a backslash stands for.
func (r *reader) escape(b []byte) []byte {
	if r.at == len(r.data) {
		return b // the string has no end, which the caller says
	}
	c := r.data[r.at]
	r.at++
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		return utf8.AppendRune(b, r.codePoint())
	default:
		r.fail(errSyntax)
		return b
	}
}

// codePoint reads the digits behind \u and, for the first half of a surrogate
// pair, the second half. A half without its other half is a replacement character.
func (r *reader) codePoint() rune {
	high := r.hex4()
	if !utf16.IsSurrogate(high) {
		return high
	}
	before := r.at
	if !r.literal(`\u`) {
		return utf8.RuneError
	}
	both := utf16.DecodeRune(high, r.hex4())
	if both == utf8.RuneError {
		r.at = before
	}
	return both
}

func (r *reader) hex4() rune {
	if len(r.data)-r.at < 4 {
		r.fail(errSyntax)
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(alias(r.data[r.at:r.at+4]), 16, 16)
	if err != nil {
		r.fail(errSyntax)
		return utf8.RuneError
	}
	r.at += 4
	return rune(n)
}

// appendString appends s as a JSON string. What is no UTF-8 becomes a
// replacement character; everything that need not be escaped is not.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, s[from:i]...)
				b = utf8.AppendRune(b, r)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		b = appendEscape(b, c)
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		const hex = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}
