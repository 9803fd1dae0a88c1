package httpapi

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// maxParams limits the parameters of a request. The largest real request, a
// service definition of 0.9, has about 30.
const maxParams = 1024

// parse adds the pairs of a query or form body. It never fails (clients of every
// age send half-escaped text): pairs are split at &, name from value at the first
// =, a valid %XX is decoded and any other % stays, + is a blank, and ; is an
// ordinary byte. Bytes that are not UTF-8 become U+FFFD, as in Java. Pairs beyond
// maxParams are dropped.
//
// Values without escapes alias data, which must stay as it is until reset.
func (p *Params) parse(data []byte) {
	valid := utf8.Valid(data) // then so is every piece without escapes
	for len(data) > 0 && len(p.pairs) < maxParams {
		part := data
		if i := bytes.IndexByte(data, '&'); i >= 0 {
			part, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		if len(part) == 0 {
			continue
		}
		name, value := part, part[len(part):]
		if i := bytes.IndexByte(part, '='); i >= 0 {
			name, value = part[:i], part[i+1:]
		}
		p.pairs = append(p.pairs, pair{p.decode(name, valid), p.decode(value, valid)})
	}
}

// decode returns the text that b escapes; valid says that b is UTF-8.
func (p *Params) decode(b []byte, valid bool) string {
	if valid && bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return alias(b)
	}
	start := len(p.decoded)
	p.decoded = appendUnescaped(p.decoded, b)
	return validText(p.decoded[start:])
}

// validText returns b as a string that shares its memory, or a copy in which each
// byte that is not UTF-8 is U+FFFD.
func validText(b []byte) string {
	if s := alias(b); utf8.ValidString(s) {
		return s
	}
	return string([]rune(string(b)))
}

// appendUnescaped appends b with %XX and + decoded, as far as they are valid.
func appendUnescaped(dst, b []byte) []byte {
	end := len(dst)
	dst = slices.Grow(dst, len(b))[:end+len(b)]
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(b):
			if high, low := unhex[b[i+1]], unhex[b[i+2]]; high|low >= 0 {
				c = byte(high)<<4 | byte(low)
				i += 2
			}
		}
		dst[end] = c
		end++
	}
	return dst[:end]
}

// unhex maps a byte to the value of the hexadecimal digit it is, or -1.
var unhex = func() (table [256]int8) {
	for i := range table {
		table[i] = -1
	}
	for i, c := range "0123456789" {
		table[c] = int8(i)
	}
	for i := range int8(6) {
		table['a'+i], table['A'+i] = 10+i, 10+i
	}
	return table
}()

// charset returns the encoding of that name, or nil for UTF-8 and for a name
// that is not known.
func charset(name string) encoding.Encoding {
	if strings.EqualFold(name, "utf-8") { // what every Java client sends
		return nil
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		return nil
	}
	if canonical, err := htmlindex.Name(enc); err != nil || canonical == "utf-8" {
		return nil
	}
	return enc
}

// alias returns a string that shares the memory of b.
func alias(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// bytesOf returns the memory of s, which must not be written to.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
