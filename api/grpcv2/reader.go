package grpcv2

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a request. Jackson takes 1,000, real requests
// need 3.
const maxDepth = 64

// reader reads one JSON value member by member, without building anything. Its
// strings are parts of data where that has no escapes. After the first fault,
// which is in err, every method returns a zero value.
//
// Scalars are read as Jackson reads them for the original: a number or a boolean
// is a fine string, a numeric string a fine number, null leaves what is there.
type reader struct {
	data  []byte
	at    int
	depth int
	fresh bool // nothing of the present object or array has been read
	err   error
}

var (
	errSyntax = errors.New("broken JSON")
	errShape  = errors.New("a value of the wrong kind")
	errDepth  = errors.New("too deeply nested")
)

// fail notes the first fault.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%w at byte %d", err, r.at)
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	if r.err != nil {
		return 0
	}
	for r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// literal consumes a word if it comes next.
func (r *reader) literal(word string) bool {
	if len(r.data)-r.at < len(word) || string(r.data[r.at:r.at+len(word)]) != word {
		return false
	}
	r.at += len(word)
	return true
}

// null consumes a null if it comes next.
func (r *reader) null() bool { return r.peek() == 'n' && r.literal("null") }

// object enters an object, whose members [reader.member] reads. It returns false
// for null and for what is no object.
func (r *reader) object() bool { return r.enter('{') }

// array enters an array, whose elements [reader.element] announces. It returns
// false for null and for what is no array.
func (r *reader) array() bool { return r.enter('[') }

func (r *reader) enter(bracket byte) bool {
	switch {
	case r.null():
		return false
	case r.peek() != bracket:
		r.fail(errShape)
		return false
	}
	r.at++
	r.fresh = true
	if r.depth++; r.depth > maxDepth {
		r.fail(errDepth)
		return false
	}
	return true
}

// more reports whether the present object or array goes on, and leaves it if not.
func (r *reader) more(bracket byte) bool {
	first := r.fresh
	r.fresh = false
	switch c := r.peek(); {
	case c == bracket:
		r.at++
		r.depth--
		return false
	case first && c != 0:
		return true
	case c == ',':
		r.at++
		return true
	default:
		r.fail(errSyntax)
		return false
	}
}

// element reports whether the array has one more element, which must be read next.
func (r *reader) element() bool { return r.more(']') }

// member returns the name of the next member of the object, whose value must be
// read next; ok is false at the end.
func (r *reader) member() (name string, ok bool) {
	if !r.more('}') {
		return "", false
	}
	if r.peek() != '"' {
		r.fail(errSyntax)
		return "", false
	}
	name = r.quoted()
	if r.peek() != ':' {
		r.fail(errSyntax)
		return "", false
	}
	r.at++
	return name, r.err == nil
}

// text reads a string; given is false for null.
func (r *reader) text() (s string, given bool) {
	switch c := r.peek(); {
	case c == '"':
		s = r.quoted()
	case c == 'n' && r.literal("null"):
		return "", false
	case c == 't' && r.literal("true"), c == 'f' && r.literal("false"):
		s = strconv.FormatBool(c == 't')
	case c == '-' || isDigit(c):
		s = r.numeral()
	default:
		r.fail(errShape)
	}
	return s, r.err == nil
}

// number reads a finite number into v; null leaves v.
func (r *reader) number(v *float64) {
	var s string
	switch c := r.peek(); {
	case c == 'n' && r.literal("null"):
		return
	case c == '"':
		if s = r.quoted(); s == "" {
			return
		}
	case c == '-' || isDigit(c):
		s = r.numeral()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		r.fail(errShape)
		return
	}
	*v = f
}

// integer reads a number of 32 bits, the fraction of which is dropped, into v;
// null leaves v.
func (r *reader) integer(v *int32) {
	f := float64(*v)
	r.number(&f)
	if f = math.Trunc(f); f < math.MinInt32 || f > math.MaxInt32 {
		r.fail(errShape)
		return
	}
	*v = int32(f)
}

// boolean reads a boolean into v; null leaves v.
func (r *reader) boolean(v *bool) {
	switch c := r.peek(); {
	case c == 'n' && r.literal("null"):
	case c == 't' && r.literal("true"):
		*v = true
	case c == 'f' && r.literal("false"):
		*v = false
	case c == '"':
		switch r.quoted() {
		case "true", "True", "TRUE":
			*v = true
		case "false", "False", "FALSE", "":
			*v = false
		default:
			r.fail(errShape)
		}
	case isDigit(c):
		var n int32
		r.integer(&n)
		*v = n != 0
	default:
		r.fail(errShape)
	}
}

// skip passes over the next value.
func (r *reader) skip() {
	switch c := r.peek(); c {
	case '{':
		for r.object(); r.err == nil; r.skip() {
			if _, ok := r.member(); !ok {
				return
			}
		}
	case '[':
		for r.array(); r.err == nil; r.skip() {
			if !r.element() {
				return
			}
		}
	default:
		r.text()
	}
}

// numeral reads a JSON number as it is written.
func (r *reader) numeral() string {
	from := r.at
	if r.data[r.at] == '-' {
		r.at++
	}
	whole := r.at
	ok := r.digits()
	if r.at-whole > 1 && r.data[whole] == '0' {
		ok = false
	}
	if r.at < len(r.data) && r.data[r.at] == '.' {
		r.at++
		ok = r.digits() && ok
	}
	if r.at < len(r.data) && (r.data[r.at] == 'e' || r.data[r.at] == 'E') {
		r.at++
		if r.at < len(r.data) && (r.data[r.at] == '+' || r.data[r.at] == '-') {
			r.at++
		}
		ok = r.digits() && ok
	}
	if !ok {
		r.fail(errSyntax)
		return ""
	}
	return alias(r.data[from:r.at])
}

func (r *reader) digits() bool {
	from := r.at
	for r.at < len(r.data) && isDigit(r.data[r.at]) {
		r.at++
	}
	return r.at > from
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// quoted reads a string in quotes. It shares the memory of data unless it has
// escapes.
func (r *reader) quoted() string {
	r.at++
	from := r.at
	ascii := true
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			s := r.data[from:r.at]
			if !ascii && !utf8.Valid(s) {
				r.fail(errNotUTF8)
				return ""
			}
			r.at++
			return alias(s)
		case c == '\\':
			return r.escaped(from)
		case c < ' ':
			r.fail(errSyntax)
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.fail(errSyntax)
	return ""
}
