package httpapi

import (
	"bytes"
	"strings"
)

// fault is a reason to refuse a path before it is looked up.
type fault uint8

const (
	faultNone fault = iota
	faultDoubleSlash
	faultSemicolon
	faultNotNormal // has /./ or /../
	faultEncoded   // has an escaped slash, backslash, NUL or another control
)

// message is what Nacos 1.4.8 says of the fault (its request firewall).
func (f fault) message() string {
	switch f {
	case faultDoubleSlash:
		return `The request was rejected because the URL contained a potentially malicious String "//"`
	case faultSemicolon:
		return `The request was rejected because the URL contained a potentially malicious String ";"`
	case faultNotNormal:
		return "The request was rejected because the URL was not normalized."
	default:
		return "The request was rejected because its path has escaped control or separator characters."
	}
}

// pathFault judges a decoded path.
func pathFault(path string) fault {
	if strings.Contains(path, "//") {
		return faultDoubleSlash
	}
	if strings.Contains(path, ";") {
		return faultSemicolon
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return faultNotNormal
		}
	}
	return faultNone
}

// decodePath decodes the valid escapes of a path. Those that would add a
// separator or a control character are a fault.
func decodePath(path string) (string, fault) {
	if !strings.Contains(path, "%") {
		return path, faultNone
	}
	decoded := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) || unhex[path[i+1]] < 0 || unhex[path[i+2]] < 0 {
			decoded = append(decoded, path[i])
			continue
		}
		c := byte(unhex[path[i+1]])<<4 | byte(unhex[path[i+2]])
		if c < ' ' || c == 0x7f || c == '/' || c == '\\' {
			return "", faultEncoded
		}
		decoded = append(decoded, c)
		i += 2
	}
	return string(decoded), faultNone
}

// splitTarget splits a request target into path and query. An absolute one, as
// a proxy sends, loses scheme and authority.
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		if i := bytes.Index(target, []byte("://")); i >= 0 {
			rest := target[i+3:]
			slash := bytes.IndexAny(rest, "/?")
			switch {
			case slash < 0:
				target = []byte{'/'}
			case rest[slash] == '?':
				return []byte{'/'}, rest[slash+1:]
			default:
				target = rest[slash:]
			}
		}
	}
	path, query, _ = bytes.Cut(target, []byte{'?'})
	return path, query
}

// rawTargetByte marks the bytes that may not stand unescaped in a request
// target; the original answers 400 to them too (live 1.4.8: route-query-raw).
var rawTargetByte = func() (bad [256]bool) {
	for _, c := range "\"#<>\\^`{|}" {
		bad[c] = true
	}
	for c := range 0x21 {
		bad[c] = true
	}
	bad[0x7f] = true
	return bad
}()

// validTarget reports whether a request target has none of those bytes.
func validTarget(target []byte) bool {
	for _, c := range target {
		if rawTargetByte[c] {
			return false
		}
	}
	return true
}
