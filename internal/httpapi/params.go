package httpapi

import (
	"iter"
	"strings"

	"golang.org/x/text/encoding"
)

// Params is the parameters of one request: those of the query first, then those
// of a form body. Names are case sensitive, and the first value of a name
// counts.
//
// Every string that it returns lives until the handler returns; Copy returns one
// that stays. Unless a method says otherwise, values are trimmed as Java does it,
// of every byte up to the space at both ends, and re-decoded if the request names
// an encoding.
type Params struct {
	pairs   []pair
	decoded []byte // memory of the values that had escapes

	recode     encoding.Encoding // of the parameter "encoding"; nil is UTF-8
	recodeSeen bool              // recode has been looked up
}

type pair struct {
	name, value string
}

// reset drops all pairs and keeps the memory, unless a large request grew it.
func (p *Params) reset() {
	clear(p.pairs)
	p.pairs = p.pairs[:0]
	if cap(p.decoded) > keepBytes {
		p.decoded = nil
	}
	p.decoded = p.decoded[:0]
	p.recode, p.recodeSeen = nil, false
}

// All yields every pair in the order of the request, as sent.
func (p *Params) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range p.pairs {
			if !yield(p.pairs[i].name, p.pairs[i].value) {
				return
			}
		}
	}
}

// Raw returns the value of name as sent, neither trimmed nor re-decoded, and
// whether it was sent.
func (p *Params) Raw(name string) (value string, sent bool) {
	for i := range p.pairs {
		if p.pairs[i].name == name {
			return p.pairs[i].value, true
		}
	}
	return "", false
}

// Untrimmed returns the value of name re-decoded but not trimmed, and whether it
// was sent. Group names need it: their trailing blanks count (1.4.8 refuses
// them).
func (p *Params) Untrimmed(name string) (value string, sent bool) {
	value, sent = p.Raw(name)
	if sent {
		value = p.redecode(value)
	}
	return value, sent
}

// Get returns the value of name, and whether it was sent, be it empty.
func (p *Params) Get(name string) (value string, sent bool) {
	value, sent = p.Untrimmed(name)
	return trim(value), sent
}

// Copy returns what Get returns, in memory of its own.
func (p *Params) Copy(name string) (value string, sent bool) {
	value, sent = p.Get(name)
	return strings.Clone(value), sent
}

// Optional returns the value of name, or def if it is absent, empty or blank.
func (p *Params) Optional(name, def string) string {
	value, sent := p.Raw(name)
	if !sent || blank(value) {
		return def
	}
	return trim(p.redecode(value))
}

// Required returns the value of name, or a *ParamError if it is absent or empty.
// One of blanks passes and is "" (live 1.4.8).
func (p *Params) Required(name string) (string, error) {
	value, _ := p.Raw(name)
	if value == "" {
		return "", &ParamError{Fault: ParamMissing, Name: name}
	}
	return trim(p.redecode(value)), nil
}

// redecode turns the UTF-8 bytes of s into those of the request's "encoding", if
// it names a known one other than UTF-8 (reference http-api-v1 1.2).
func (p *Params) redecode(s string) string {
	if !p.recodeSeen {
		p.recodeSeen = true
		if name, ok := p.Raw("encoding"); ok {
			p.recode = charset(name)
		}
	}
	if p.recode == nil || ascii(s) {
		return s
	}
	out, err := p.recode.NewDecoder().String(s)
	if err != nil {
		return s
	}
	return out
}

// trim strips bytes up to the space at both ends, as java.lang.String.trim.
func trim(s string) string {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// blank reports whether s is empty or of white space only.
func blank(s string) bool {
	return s == "" || s[0] <= ' ' && strings.TrimSpace(s) == "" || s[0] >= 0x80 && strings.TrimSpace(s) == ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
