package result

import (
	"strconv"
	"strings"
)

// leadingToken returns the word that a text begins with where JSON could begin,
// when no JSON begins so; else nothing.
func leadingToken(text string) string {
	text = strings.TrimLeft(text, " \t")
	end := 0
	for end < len(text) && end < maxShown && wordByte(text[end]) {
		end++
	}
	word := text[:end]
	if word == "" || word == "true" || word == "false" || word == "null" || word[0] >= '0' && word[0] <= '9' {
		return ""
	}
	return word
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// column returns where the decoder stands once it has read the word, counted
// from 1.
func column(text, word string) string {
	return strconv.Itoa(strings.Index(text, word) + len(word) + 1)
}
