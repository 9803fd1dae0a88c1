package v1

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// appendDouble appends f as Java prints a double within our ranges: with a
// decimal point, and the shortest digits that mean f. f must be finite.
func appendDouble(b []byte, f float64) []byte {
	if n := int64(f); float64(n) == f { // nearly every weight
		b = strconv.AppendInt(b, n, 10)
		return append(b, '.', '0')
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, '.', '0')
	}
	return b
}

// endString ends a JSON string whose text was appended raw from start on, behind
// a quote: it escapes the text where that is needed.
func endString(b []byte, start int) []byte {
	for _, c := range b[start:] {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return registry.AppendJSONString(b[:start-1], string(b[start:]))
		}
	}
	return append(b, '"')
}

// appendGrouped appends group@@service as a JSON string.
func appendGrouped(b []byte, key registry.ServiceKey) []byte {
	b = append(b, '"')
	start := len(b)
	b = append(b, key.Group...)
	b = append(b, registry.GroupSeparator...)
	b = append(b, key.Name...)
	return endString(b, start)
}

// appendInstanceID appends the ID of an instance as a JSON string.
func appendInstanceID(b []byte, i *registry.Instance, grouped string) []byte {
	b = append(b, '"')
	start := len(b)
	return endString(i.AppendID(b, grouped), start)
}
