package modern

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// AppendDouble appends f as Java prints a double within our ranges: with a decimal
// point, and the shortest digits that mean f. f must be finite.
func AppendDouble(b []byte, f float64) []byte { return appendDecimal(b, f, 64) }

// AppendFloat is [AppendDouble] with the digits that a 32-bit float needs.
func AppendFloat(b []byte, f float32) []byte { return appendDecimal(b, float64(f), 32) }

func appendDecimal(b []byte, f float64, bits int) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, bits)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// AppendStrings appends a JSON array of strings.
func AppendStrings(b []byte, list []string) []byte {
	return AppendArray(b, list, registry.AppendJSONString)
}

// AppendArray appends a JSON array whose items append writes.
func AppendArray[T any](b []byte, list []T, write func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for n, item := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = write(b, item)
	}
	return append(b, ']')
}

// AppendText appends a member of the object that is being written, whose value is a
// string.
func AppendText(b []byte, name, value string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	return registry.AppendJSONString(b, value)
}

// EncodeJSON appends v as JSON with its texts as they are: encoding/json escapes
// them for HTML by itself.
func EncodeJSON(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}
