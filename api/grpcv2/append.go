package grpcv2

import (
	"bytes"
	"strconv"
)

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

// appendDouble appends a finite number with a fraction, as Java writes doubles:
// some clients tell integers from doubles by it.
func appendDouble(b []byte, f float64) []byte {
	if n := int64(f); float64(n) == f { // nearly every weight
		return append(strconv.AppendInt(b, n, 10), '.', '0')
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, '.', '0')
	}
	return b
}
