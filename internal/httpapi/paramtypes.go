package httpapi

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ParamFault says what is wrong with a parameter.
type ParamFault uint8

const (
	// ParamMissing: required, and absent or empty.
	ParamMissing ParamFault = iota + 1
	// ParamFormat: not of the wanted type.
	ParamFormat
	// ParamUnbound: one that the original binds by annotation is absent.
	ParamUnbound
	// ParamUnconvertible: one that the original binds by annotation is not of the
	// wanted type.
	ParamUnconvertible
	// ParamText: has bytes that are not text (see CheckText).
	ParamText
)

// ParamError refuses a parameter. Error is the text of Nacos 1.4.8, without
// "caused:"; packages that answer in another form read the fields.
type ParamError struct {
	Fault ParamFault
	Name  string
	Value string // as sent, at most 256 bytes; empty if missing
	Type  string // Java name of the wanted type, for the bound faults
	// Reason is the rest of the sentence of ParamText.
	Reason string
}

// Error implements error.
func (e *ParamError) Error() string {
	switch e.Fault {
	case ParamMissing:
		return "Param '" + e.Name + "' is required."
	case ParamUnbound:
		return "Required request parameter '" + e.Name + "' for method parameter type " + e.Type + " is not present"
	case ParamUnconvertible:
		return "Failed to convert value of type 'java.lang.String' to required type '" + e.Type + "'; nested exception is " + e.javaCause()
	case ParamText:
		return "Param '" + e.Name + "' is illegal, " + e.Reason
	default:
		return `For input string: "` + e.Value + `"`
	}
}

// Status is the HTTP status of the fault in Nacos 1.4.8: 400, or 500 for what
// the original binds by annotation (reference http-api-v1 1.5).
func (e *ParamError) Status() int {
	if e.Fault == ParamUnbound || e.Fault == ParamUnconvertible {
		return 500
	}
	return 400
}

// Causes are the messages of the chain of causes, outermost first.
func (e *ParamError) Causes() []string {
	if e.Fault != ParamUnconvertible {
		return []string{e.Error()}
	}
	return []string{e.Error(), e.innerCause()}
}

func (e *ParamError) innerCause() string {
	if e.Type == "boolean" {
		return "Invalid boolean value [" + e.Value + "]"
	}
	return `For input string: "` + e.Value + `"`
}

func (e *ParamError) javaCause() string {
	if e.Type == "boolean" {
		return "java.lang.IllegalArgumentException: " + e.innerCause()
	}
	return "java.lang.NumberFormatException: " + e.innerCause()
}

// errorValueBytes caps the part of a value that an error repeats.
const errorValueBytes = 256

func formatError(fault ParamFault, name, value, javaType string) *ParamError {
	if len(value) > errorValueBytes {
		value = value[:errorValueBytes]
	}
	return &ParamError{Fault: fault, Name: name, Value: strings.ToValidUTF8(strings.Clone(value), "\ufffd"), Type: javaType}
}

// Int returns the value of name as a 32-bit integer ("+80" counts as 80), or def
// if it is absent or blank, or a *ParamError.
func (p *Params) Int(name string, def int) (int, error) {
	value := p.Optional(name, "")
	if value == "" {
		return def, nil
	}
	return parseInt(name, value)
}

// RequiredInt is Int of a required parameter.
func (p *Params) RequiredInt(name string) (int, error) {
	value, err := p.Required(name)
	if err != nil {
		return 0, err
	}
	return parseInt(name, value)
}

func parseInt(name, value string) (int, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, formatError(ParamFormat, name, value, "int")
	}
	return int(n), nil
}

// IntOrZero returns the value of name as Int does, and 0 for text that is not a
// number, as the page numbers of service/list (live 1.4.8).
func (p *Params) IntOrZero(name string) int {
	n, err := p.Int(name, 0)
	if err != nil {
		return 0
	}
	return n
}

// Float returns the value of name as a number, or def if it is absent or blank,
// or a *ParamError. It takes what Java's Double.parseDouble takes: decimals,
// exponents, hexadecimal floats, a trailing d or f, NaN and Infinity; the caller
// judges the range.
func (p *Params) Float(name string, def float64) (float64, error) {
	value := p.Optional(name, "")
	if value == "" {
		return def, nil
	}
	f, ok := ParseJavaDouble(value)
	if !ok {
		return 0, formatError(ParamFormat, name, value, "double")
	}
	return f, nil
}

// ParseJavaDouble reads a number as Java's Double.parseDouble does. A number out
// of range is an infinity or zero, as there.
func ParseJavaDouble(s string) (f float64, ok bool) {
	s = trim(s)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" {
		return 0, false
	}
	switch {
	case digits == "NaN":
		return math.NaN(), true
	case digits == "Infinity" && s[0] == '-':
		return math.Inf(-1), true
	case digits == "Infinity":
		return math.Inf(1), true
	case digits[0] != '.' && (digits[0] < '0' || digits[0] > '9'), strings.Contains(digits, "_"):
		return 0, false // ParseFloat would take inf, nan and digit separators
	}
	if last := s[len(s)-1] | 0x20; (last == 'd' || last == 'f') && !hexWithoutExponent(digits) {
		s = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return f, true
}

// hexWithoutExponent reports whether a final d or f of s is a hexadecimal digit.
func hexWithoutExponent(s string) bool {
	return len(s) > 1 && s[1]|0x20 == 'x' && !strings.ContainsAny(s, "pP")
}

// BoolLenient returns the value of name, or def if it is absent or blank: true,
// t, on, yes and y of any case are true, everything else is false. So the
// original reads enabled, enable, healthy, ephemeral, valid and
// useInstancePort4Check.
func (p *Params) BoolLenient(name string, def bool) bool {
	value := p.Optional(name, "")
	if value == "" {
		return def
	}
	return LenientBool(value)
}

// LenientBool is the rule of BoolLenient for one value.
func LenientBool(s string) bool {
	for _, yes := range [...]string{"true", "t", "on", "yes", "y"} {
		if len(s) == len(yes) && strings.EqualFold(s, yes) {
			return true
		}
	}
	return false
}

// BoolStrict returns the value of name, or def if it is absent or blank: true of
// any case is true, everything else is false. So the original reads healthyOnly,
// isCheck, aggregation and most boolean switches.
func (p *Params) BoolStrict(name string, def bool) bool {
	value := p.Optional(name, "")
	if value == "" {
		return def
	}
	return strings.EqualFold(value, "true")
}

// Bound returns a required text parameter of a handler that the original binds
// by annotation: untrimmed, and empty is a value. Absence is a *ParamError.
func (p *Params) Bound(name string) (string, error) {
	value, sent := p.Raw(name)
	if !sent {
		return "", &ParamError{Fault: ParamUnbound, Name: name, Type: "String"}
	}
	return value, nil
}

// BoundOptional is Bound with a default, which an empty value takes too.
func (p *Params) BoundOptional(name, def string) string {
	if value, _ := p.Raw(name); value != "" {
		return value
	}
	return def
}

// BoundInt returns a required integer parameter of such a handler.
func (p *Params) BoundInt(name string) (int, error) {
	value, sent := p.Raw(name)
	if !sent || value == "" {
		return 0, &ParamError{Fault: ParamUnbound, Name: name, Type: "int"}
	}
	return boundInt(name, value)
}

// BoundIntOptional is BoundInt with a default, which an empty value takes too.
func (p *Params) BoundIntOptional(name string, def int) (int, error) {
	value, _ := p.Raw(name)
	if value == "" {
		return def, nil
	}
	return boundInt(name, value)
}

func boundInt(name, value string) (int, error) {
	n, err := strconv.ParseInt(trim(value), 10, 32)
	if err != nil {
		return 0, formatError(ParamUnconvertible, name, value, "int")
	}
	return int(n), nil
}

// BoundFloat returns a number of such a handler, or def if it is absent or empty:
// what [Params.Float] takes. The caller judges the range.
func (p *Params) BoundFloat(name string, def float64) (float64, error) {
	value, _ := p.Raw(name)
	if value == "" {
		return def, nil
	}
	f, ok := ParseJavaDouble(value)
	if !ok {
		return 0, formatError(ParamUnconvertible, name, value, "float")
	}
	return f, nil
}

// BoundBool returns a boolean of such a handler, or def if it is absent or
// empty: true, 1, yes, on and false, 0, no, off of any case, anything else is a
// *ParamError.
func (p *Params) BoundBool(name string, def bool) (bool, error) {
	value, _ := p.Raw(name)
	switch strings.ToLower(trim(value)) {
	case "":
		return def, nil
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	default:
		return false, formatError(ParamUnconvertible, name, value, "boolean")
	}
}
