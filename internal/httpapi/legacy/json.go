package legacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// appendNumber appends a number as Java prints a double or a float within our
// ranges, with a decimal point. bits is 64 or 32. f must be finite.
func appendNumber(b []byte, f float64, bits int) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, bits)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, '.', '0')
	}
	return b
}

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

// The types below read JSON with the tolerance of the decoder that 0.9 uses:
// numbers and flags may be texts, texts may be numbers, and null is nothing.

var errNotScalar = errors.New("not a value of the wanted type")

// isNull reports whether a JSON value means that the field is not there.
func isNull(data []byte) bool {
	return string(data) == "null" || string(data) == `""`
}

// scalar returns the text of a JSON string, number or boolean.
func scalar(data []byte) (string, error) {
	switch data[0] {
	case '"':
		var text string
		err := json.Unmarshal(data, &text)
		return strings.TrimSpace(text), err
	case '{', '[':
		return "", errNotScalar
	default:
		return string(data), nil
	}
}

type looseText string

func (t *looseText) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	text, err := scalar(data)
	*t = looseText(text)
	return err
}

type looseNumber float64

func (n *looseNumber) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	text, err := scalar(data)
	if err != nil {
		return err
	}
	f, ok := httpapi.ParseJavaDouble(text)
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return errNotScalar
	}
	*n = looseNumber(f)
	return nil
}

// looseInt loses a fraction.
type looseInt int32

func (n *looseInt) UnmarshalJSON(data []byte) error {
	var f looseNumber
	if err := f.UnmarshalJSON(data); err != nil {
		return err
	}
	whole := math.Trunc(float64(f))
	if whole < math.MinInt32 || whole > math.MaxInt32 {
		return errNotScalar
	}
	*n = looseInt(whole)
	return nil
}

type looseFlag bool

func (f *looseFlag) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	text, err := scalar(data)
	if err != nil {
		return err
	}
	switch strings.ToLower(text) {
	case "true", "1":
		*f = true
	case "false", "0":
		*f = false
	default:
		return errNotScalar
	}
	return nil
}

// metadataOf reads a JSON object of scalars, "" when the field is not there.
func metadataOf(param string, raw json.RawMessage) (registry.Metadata, error) {
	if len(raw) == 0 || isNull(raw) {
		return "", nil
	}
	m, err := registry.ParseMetadata(string(raw))
	if raw[0] != '{' || err != nil {
		return "", malformed(param, "its metadata is no JSON object of texts")
	}
	return m, nil
}
