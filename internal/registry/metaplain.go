package registry

import (
	"strings"
	"unicode/utf8"
)

// maxPlain is how many entries [parsePlainMetadata] takes.
const maxPlain = 32

type plainEntry struct{ key, value string }

// parsePlainMetadata reads the metadata that nearly every client sends: a JSON
// object of few strings without escapes, no key twice. It costs one allocation,
// where the general decoder costs two dozen. ok is false for all other texts,
// which says nothing about them.
func parsePlainMetadata(text string) (m Metadata, ok bool) {
	rest, ok := cutPlain(text, '{')
	if !ok || !utf8.ValidString(text) {
		return "", false
	}
	var room [maxPlain]plainEntry
	entries := room[:0]
	if rest, ok = cutPlain(rest, '}'); ok {
		return "", strings.Trim(rest, jsonBlanks) == ""
	}
	for {
		var e plainEntry
		if e, rest, ok = cutPlainEntry(rest); !ok || len(entries) == maxPlain {
			return "", false
		}
		if entries, ok = insertPlain(entries, e); !ok {
			return "", false
		}
		if rest, ok = cutPlain(rest, ','); ok {
			continue
		}
		if rest, ok = cutPlain(rest, '}'); !ok || strings.Trim(rest, jsonBlanks) != "" {
			return "", false
		}
		return encodePlain(entries, len(text)), true
	}
}

const jsonBlanks = " \t\r\n"

// cutPlain drops blanks and then c from the front. Without c it returns s.
func cutPlain(s string, c byte) (rest string, ok bool) {
	if s != "" && s[0] == c { // as machines write it
		return s[1:], true
	}
	trimmed := strings.TrimLeft(s, jsonBlanks)
	if trimmed == "" || trimmed[0] != c {
		return s, false
	}
	return trimmed[1:], true
}

func cutPlainEntry(s string) (e plainEntry, rest string, ok bool) {
	if e.key, rest, ok = cutPlainString(s); !ok {
		return e, s, false
	}
	if rest, ok = cutPlain(rest, ':'); !ok {
		return e, s, false
	}
	e.value, rest, ok = cutPlainString(rest)
	return e, rest, ok
}

func cutPlainString(s string) (text, rest string, ok bool) {
	s, ok = cutPlain(s, '"')
	if !ok {
		return "", s, false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			return s[:i], s[i+1:], true
		case c == '\\' || c < ' ':
			return "", s, false
		}
	}
	return "", s, false
}

// insertPlain keeps the entries in the order of their keys; false when the key
// is there already.
func insertPlain(entries []plainEntry, e plainEntry) ([]plainEntry, bool) {
	at := len(entries)
	for at > 0 && entries[at-1].key > e.key {
		at--
	}
	if at > 0 && entries[at-1].key == e.key {
		return entries, false
	}
	entries = append(entries, e)
	copy(entries[at+1:], entries[at:])
	entries[at] = e
	return entries, true
}

// encodePlain writes the entries as [NewMetadata] does. They need no escapes.
func encodePlain(entries []plainEntry, size int) Metadata {
	var b strings.Builder
	b.Grow(size)
	open := `{"`
	for _, e := range entries {
		b.WriteString(open)
		b.WriteString(e.key)
		b.WriteString(`":"`)
		b.WriteString(e.value)
		open = `","`
	}
	b.WriteString(`"}`)
	return Metadata(b.String())
}
