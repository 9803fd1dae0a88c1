package v1

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Codes of a RestResult.
const (
	resultOK      = 200
	resultRefused = 400
)

// appendResult begins a RestResult, the envelope of the calls outside /v1/ns. The
// data and a closing brace must follow. An empty message is null.
func appendResult(b []byte, code int, message string) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	if message == "" {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, message)
	}
	return append(b, `,"data":`...)
}

// appendStrings appends a JSON array of strings.
func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for n, s := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, s)
	}
	return append(b, ']')
}

// appendFloat is appendDouble with the digits that a 32-bit float needs.
func appendFloat(b []byte, f float32) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, float64(f), 'f', -1, 32)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// encodeJSON returns v as JSON with its texts as they are: encoding/json escapes
// them for HTML by itself.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}
