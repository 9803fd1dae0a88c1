package registry

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Metadata is an immutable map of strings, held as one compact JSON object with
// sorted keys, so that equal maps are equal values, share memory when interned,
// and go onto the wire without being encoded again. The zero value is the empty
// map.
type Metadata string

// NewMetadata encodes m. Invalid UTF-8 in it is replaced; of two keys that become
// equal by that, one stays.
func NewMetadata(m map[string]string) Metadata {
	if len(m) == 0 {
		return ""
	}
	m = validKeys(m)
	buf := make([]byte, 0, 32*len(m))
	buf = append(buf, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendJSONString(buf, k)
		buf = append(buf, ':')
		buf = AppendJSONString(buf, m[k])
	}
	return Metadata(append(buf, '}'))
}

// validKeys returns m, or a copy with valid keys if it has others.
func validKeys(m map[string]string) map[string]string {
	valid := true
	for k := range m {
		valid = valid && utf8.ValidString(k)
	}
	if valid {
		return m
	}
	copied := make(map[string]string, len(m))
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(m))) { // the first wins, always the same
		copied[strings.ToValidUTF8(k, "\ufffd")] = m[k]
	}
	return copied
}

// ParseMetadata reads what clients send: a JSON object whose values are
// scalars, or the older form k=v,k2=v2. Numbers and booleans become their text,
// null values vanish, an empty text or null is the empty map. Anything else is
// refused with [InvalidMetadata].
func ParseMetadata(text string) (Metadata, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	if m, ok := parsePlainMetadata(text); ok {
		return m, nil
	}
	if m, ok := parseMetadataJSON(text); ok {
		return NewMetadata(m), nil
	}
	m, ok := parseMetadataPairs(text)
	if !ok {
		return "", Refuse(InvalidMetadata, "metadata", text, "metadata format incorrect:%s", text)
	}
	return NewMetadata(m), nil
}

func parseMetadataJSON(text string) (map[string]string, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var raw map[string]any
	if err := dec.Decode(&raw); err != nil {
		return nil, false
	}
	if rest := strings.TrimSpace(text[dec.InputOffset():]); rest != "" {
		return nil, false
	}
	m := make(map[string]string, len(raw))
	for k, v := range raw {
		switch v := v.(type) {
		case nil:
		case string:
			m[k] = v
		case json.Number:
			m[k] = v.String()
		case bool:
			m[k] = "false"
			if v {
				m[k] = "true"
			}
		default:
			return nil, false
		}
	}
	return m, true
}

// parseMetadataPairs follows the original, whose text splitting drops trailing
// empty parts; every other part needs exactly one key and one value.
func parseMetadataPairs(text string) (map[string]string, bool) {
	m := map[string]string{}
	text = strings.TrimRight(text, ",")
	if text == "" {
		return m, true
	}
	for part := range strings.SplitSeq(text, ",") {
		k, v, found := strings.Cut(strings.TrimRight(part, "="), "=")
		if !found || strings.Contains(v, "=") {
			return nil, false
		}
		m[k] = v
	}
	return m, true
}

// JSON returns the map as a JSON object.
func (m Metadata) JSON() string {
	if m == "" {
		return "{}"
	}
	return string(m)
}

// AppendJSON appends the map as a JSON object.
func (m Metadata) AppendJSON(b []byte) []byte { return append(b, m.JSON()...) }

// Len returns the number of characters in keys and values: what the limit on
// metadata counts.
func (m Metadata) Len() int {
	n := 0
	for k, v := range m.All() {
		n += utf8.RuneCountInString(k) + utf8.RuneCountInString(v)
	}
	return n
}

// Map returns a copy that the caller owns; never nil.
func (m Metadata) Map() map[string]string { return maps.Collect(m.All()) }

// Get returns the value of key. It does not allocate unless the entry has
// escapes.
func (m Metadata) Get(key string) (string, bool) {
	for k, v := range m.All() {
		if k == key {
			return v, true
		}
	}
	return "", false
}

// All yields the entries in the order of their keys.
func (m Metadata) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		rest := strings.TrimPrefix(string(m), "{")
		for strings.HasPrefix(rest, `"`) {
			var k, v string
			k, rest = scanJSONString(rest)
			v, rest = scanJSONString(strings.TrimPrefix(rest, ":"))
			if !yield(k, v) {
				return
			}
			rest = strings.TrimPrefix(rest, ",")
		}
	}
}

// With returns m with the entries of other laid over it.
func (m Metadata) With(other Metadata) Metadata {
	if other == "" {
		return m
	}
	all := m.Map()
	maps.Insert(all, other.All())
	return NewMetadata(all)
}

// Without returns m without the keys of other.
func (m Metadata) Without(other Metadata) Metadata {
	all := m.Map()
	for k := range other.All() {
		delete(all, k)
	}
	return NewMetadata(all)
}

// MarshalJSON returns the object itself.
func (m Metadata) MarshalJSON() ([]byte, error) { return []byte(m.JSON()), nil }

// UnmarshalJSON reads an object of strings, or null.
func (m *Metadata) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) || bytes.Equal(data, []byte("{}")) {
		*m = ""
		return nil
	}
	if plain, ok := parsePlainMetadata(string(data)); ok {
		*m = plain
		return nil
	}
	var raw map[string]string
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = NewMetadata(raw)
	return nil
}

// scanJSONString reads one string as [AppendJSONString] writes it and returns
// it with what follows.
func scanJSONString(s string) (text, rest string) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return s[1:i], s[i+1:]
		case '\\':
			return scanEscapedString(s)
		}
	}
	return "", ""
}

func scanEscapedString(s string) (text, rest string) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			if err := json.Unmarshal([]byte(s[:i+1]), &text); err != nil {
				return "", ""
			}
			return text, s[i+1:]
		}
	}
	return "", ""
}

// AppendJSONString appends s as a JSON string: quotes, backslashes and control
// characters escaped, invalid UTF-8 replaced, everything else as it is.
func AppendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
