package values

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// maxBrackets is the number of brackets from which on the slower check is used,
// whose memory does not grow with the depth of the JSON.
const maxBrackets = 1 << 10

func validJSON(text string) bool {
	if strings.Count(text, "{")+strings.Count(text, "[") > maxBrackets {
		return json.Valid([]byte(text))
	}
	return gjson.Valid(text)
}

// The readers below take a value with the tolerance of the original's decoder and
// report whether it can be one of the wanted type.

func textOf(v gjson.Result) (string, bool) {
	if v.Type == gjson.JSON {
		return "", false
	}
	return v.String(), true // null is ""
}

// portOf takes numbers, which lose their fraction, and numbers as text.
func portOf(v gjson.Result) (int32, bool) {
	switch v.Type {
	case gjson.Null:
		return 0, true
	case gjson.Number:
		n := math.Trunc(v.Num)
		return int32(n), n >= math.MinInt32 && n <= math.MaxInt32
	case gjson.String:
		text := strings.TrimSpace(v.Str)
		if text == "" {
			return 0, true
		}
		n, err := strconv.ParseInt(text, 10, 32)
		return int32(n), err == nil
	default:
		return 0, false
	}
}

// weightOf takes numbers, also as text, but no NaN and no infinity.
func weightOf(v gjson.Result) (float64, bool) {
	w, ok := v.Num, true
	switch v.Type {
	case gjson.Null:
		return 1, true
	case gjson.Number:
	case gjson.String:
		if strings.TrimSpace(v.Str) == "" {
			return 1, true
		}
		w, ok = httpapi.ParseJavaDouble(v.Str)
	default:
		return 0, false
	}
	return w, ok && !math.IsNaN(w) && !math.IsInf(w, 0)
}

func flagOf(v gjson.Result) (flag, ok bool) {
	switch v.Type {
	case gjson.Null:
		return true, true
	case gjson.True, gjson.False:
		return v.Type == gjson.True, true
	case gjson.Number:
		return v.Num != 0, true
	case gjson.String:
		text := strings.TrimSpace(v.Str)
		return strings.EqualFold(text, "true"), strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	default:
		return false, false
	}
}

func objectOf(v gjson.Result) (string, bool) {
	if v.Type == gjson.Null {
		return "", true
	}
	return v.Raw, v.IsObject()
}
