package result

import (
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// Fault is a refusal with its answer: what a call says in its own words.
type Fault struct {
	Status int
	Code   Code
	Data   string
}

// Error implements error.
func (f *Fault) Error() string { return f.Data }

// Missing refuses a call without a parameter that it needs.
func Missing(text string) error { return &Fault{400, ParameterMissing, text} }

// Invalid refuses a parameter that a call cannot accept.
func Invalid(text string) error { return &Fault{400, ParameterInvalid, text} }

// Java types of parameters.
const (
	JavaInteger   = "java.lang.Integer"
	JavaDouble    = "java.lang.Double"
	JavaFloat     = "java.lang.Float"
	JavaBoolean   = "java.lang.Boolean"
	JavaPlainInt  = "int"
	JavaPlainBool = "boolean"
)

// Mismatch is a value that is not of the type of its parameter.
type Mismatch struct {
	Name, Value string
	Type        string // a Java type
}

// maxShown caps the part of a value that an answer repeats.
const maxShown = 256

func mismatch(name, value, javaType string) Mismatch {
	if len(value) > maxShown {
		value = value[:maxShown]
	}
	return Mismatch{name, strings.ToValidUTF8(value, "\ufffd"), javaType}
}

// Cause is what the original's conversion says.
func (m Mismatch) Cause() string {
	if m.boolean() {
		return "Invalid boolean value [" + m.Value + "]"
	}
	return `For input string: "` + m.Value + `"`
}

func (m Mismatch) boolean() bool { return m.Type == JavaBoolean || m.Type == JavaPlainBool }

// FormError refuses values of a form that are of the wrong type.
type FormError struct {
	Form string // its name in the original
	List []Mismatch
}

// Error implements error.
func (e *FormError) Error() string { return e.List[0].Name + ": " + e.List[0].Cause() }

// ParamError refuses one value of the wrong type that is bound on its own.
type ParamError struct{ Mismatch }

// Error implements error.
func (e *ParamError) Error() string { return e.Name + ": " + e.Cause() }

// DecodeError refuses a parameter whose JSON cannot be read.
type DecodeError struct {
	Class string // what the original reads it as
	Text  string // as sent
	Cause error  // names the parameter
}

// Error implements error.
func (e *DecodeError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }

// Dialect is what a generation says where the original passes the words of its
// framework on to the client.
type Dialect interface {
	// Form words values of a form that are of the wrong type, in the order of their
	// names.
	Form(x *httpapi.Exchange, form string, list []Mismatch) string
	// Param words a value of the wrong type that is bound on its own.
	Param(x *httpapi.Exchange, m Mismatch) string
	// Decode words JSON that cannot be read.
	Decode(e *DecodeError) string
}

// FieldErrors words values of a form as Spring's FieldError does. nested adds the
// class of the cause, as it did up to 2.x.
func FieldErrors(form string, list []Mismatch, nested bool) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Mismatch) int { return strings.Compare(a.Name, b.Name) })
	texts := make([]string, len(list))
	for n, m := range list {
		field := form + "." + m.Name
		texts[n] = "Field error in object '" + form + "' on field '" + m.Name + "': rejected value [" + m.Value +
			"]; codes [typeMismatch." + field + ",typeMismatch." + m.Name + ",typeMismatch." + m.Type + ",typeMismatch]; " +
			"arguments [org.springframework.context.support.DefaultMessageSourceResolvable: codes [" + field + "," + m.Name +
			"]; arguments []; default message [" + m.Name + "]]; default message [Failed to convert property value of type " +
			"'java.lang.String' to required type '" + m.Type + "' for property '" + m.Name + "'; " + m.reason(nested) + "]"
	}
	return texts
}

// ParamText words a value that is bound on its own.
func ParamText(m Mismatch, nested bool) string {
	return "Failed to convert value of type 'java.lang.String' to required type '" + m.Type + "'; " + m.reason(nested)
}

func (m Mismatch) reason(nested bool) string {
	switch {
	case !nested:
		return m.Cause()
	case m.boolean():
		return "nested exception is java.lang.IllegalArgumentException: " + m.Cause()
	default:
		return "nested exception is java.lang.NumberFormatException: " + m.Cause()
	}
}

// DecodeText words JSON that cannot be read. where is how the decoder of the
// generation names the text.
func DecodeText(e *DecodeError, where string) string {
	reason := e.Cause.Error()
	if token := leadingToken(e.Text); token != "" {
		reason = "Unrecognized token '" + token +
			"': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: " + where +
			"; line: 1, column: " + column(e.Text, token) + "]"
	}
	return "errCode: 101, errMsg: Nacos deserialize for class [" + e.Class + "] failed, cause error[" + reason + "].  "
}
