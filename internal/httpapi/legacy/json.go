package legacy

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

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

// The functions below read JSON with the tolerance of the decoder that 0.9 uses:
// numbers and flags may be texts, texts may be numbers, null and empty texts leave
// a field as it is, unknown fields are left out, and the last of equal fields
// counts. What they return is memory of the text that they read.

// readObject gives set each field of a JSON object, and reports whether the text is
// one and set took all.
func readObject(text string, set func(name string, v gjson.Result) bool) bool {
	object := parse(text)
	return object.IsObject() && readFields(object, set)
}

// maxBrackets is the number of brackets from which on the slower check is used,
// whose memory does not grow with the depth of the JSON.
const maxBrackets = 1 << 10

// parse returns the value of a JSON text, the zero value if it is none.
func parse(text string) gjson.Result {
	var valid bool
	if strings.Count(text, "{")+strings.Count(text, "[") > maxBrackets {
		valid = json.Valid([]byte(text))
	} else {
		valid = gjson.Valid(text)
	}
	if !valid {
		return gjson.Result{}
	}
	return gjson.Parse(text)
}

func readFields(object gjson.Result, set func(name string, v gjson.Result) bool) bool {
	ok := true
	object.ForEach(func(name, value gjson.Result) bool {
		ok = set(name.Str, value)
		return ok
	})
	return ok
}

// nothing reports whether a value means that its field is not there.
func nothing(v gjson.Result) bool {
	return v.Type == gjson.Null || v.Type == gjson.String && strings.TrimSpace(v.Str) == ""
}

func readText(v gjson.Result, field *string) bool {
	if v.Type == gjson.JSON {
		return false
	}
	if !nothing(v) {
		*field = strings.TrimSpace(v.String())
	}
	return true
}

// readNumber takes no NaN and no infinity.
func readNumber(v gjson.Result, field *float64) bool {
	f, ok := v.Num, v.Type == gjson.Number
	switch {
	case nothing(v):
		return true
	case v.Type == gjson.String:
		f, ok = httpapi.ParseJavaDouble(v.Str)
	}
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	*field = f
	return true
}

// readInt loses a fraction.
func readInt(v gjson.Result, field *int32) bool {
	f := float64(*field)
	if !readNumber(v, &f) {
		return false
	}
	f = math.Trunc(f)
	*field = int32(f)
	return f >= math.MinInt32 && f <= math.MaxInt32
}

func readFlag(v gjson.Result, field *bool) bool {
	if nothing(v) {
		return true
	}
	switch strings.ToLower(strings.TrimSpace(v.String())) {
	case "true", "1":
		*field = true
	case "false", "0":
		*field = false
	default:
		return false
	}
	return true
}

// readMetadata takes an object of scalars. What it keeps is memory of its own.
func readMetadata(v gjson.Result, field *registry.Metadata) bool {
	if nothing(v) {
		return true
	}
	m, err := registry.ParseMetadata(v.Raw)
	*field = m
	return v.IsObject() && err == nil
}

// metadataOf reads the parameter that holds metadata as a JSON object; "" is none.
func metadataOf(p *httpapi.Params, param string) (m registry.Metadata, err error) {
	text := p.Optional(param, "")
	if text == "" {
		return "", nil
	}
	if v := parse(text); !v.IsObject() || !readMetadata(v, &m) {
		return "", malformed(param, "it is no JSON object of texts")
	}
	return m, nil
}
