package result

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// Form reads the parameters of a call as the original binds them: to the fields of
// a form, or each on its own. Values are trimmed, and an empty one counts as
// absent. The faults are kept, and Err returns the one that is answered.
//
// Its strings are memory of the request.
type Form struct {
	p     *httpapi.Params
	name  string
	wrong []Mismatch
	first error // parameters on their own: the first fault; a form: the first missing field
}

// NewForm returns the fields of the form that the original calls name.
func NewForm(x *httpapi.Exchange, name string) *Form { return &Form{p: x.Params(), name: name} }

// NewParams returns parameters that are each bound on its own, in the order in
// which they are asked for.
func NewParams(x *httpapi.Exchange) *Form { return &Form{p: x.Params()} }

// Err returns the fault to answer: values of the wrong type come before fields
// that are missing.
func (f *Form) Err() error {
	if len(f.wrong) > 0 {
		return &FormError{f.name, f.wrong}
	}
	return f.first
}

// Text returns a text, or def.
func (f *Form) Text(name, def string) string {
	if value, _ := f.p.Get(name); value != "" {
		return value
	}
	return def
}

// Sent reports whether a parameter was sent, be it empty.
func (f *Form) Sent(name string) bool {
	_, sent := f.p.Raw(name)
	return sent
}

// Need returns a text that must be there. An empty one is missing from a form, but
// not when it is bound on its own.
func (f *Form) Need(name string) string {
	value, sent := f.p.Get(name)
	if value == "" && (!sent || f.name != "") {
		f.missing(name, "String")
	}
	return value
}

// Int returns a number, or def.
func (f *Form) Int(name, javaType string, def int) int {
	n, _ := f.number(name, javaType, def)
	return n
}

// NeedInt returns a number that must be there.
func (f *Form) NeedInt(name string) int { return f.needInt(name, JavaInteger, "Integer") }

// NeedPlainInt is NeedInt of a parameter that the original binds to an int.
func (f *Form) NeedPlainInt(name string) int { return f.needInt(name, JavaPlainInt, "int") }

func (f *Form) needInt(name, javaType, kind string) int {
	n, there := f.number(name, javaType, 0)
	if !there {
		f.missing(name, kind)
	}
	return n
}

func (f *Form) number(name, javaType string, def int) (n int, there bool) {
	value := f.Text(name, "")
	if value == "" {
		return def, false
	}
	long, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		f.mismatch(name, value, javaType)
	}
	return int(long), true
}

// Float returns a number, or def. What it takes is what Java reads as a double;
// the caller judges the range.
func (f *Form) Float(name, javaType string, def float64) float64 {
	value := f.Text(name, "")
	if value == "" {
		return def
	}
	number, ok := httpapi.ParseJavaDouble(value)
	if !ok {
		f.mismatch(name, value, javaType)
	}
	return number
}

// NeedFloat returns a number that must be there.
func (f *Form) NeedFloat(name string) float64 {
	if f.Text(name, "") == "" {
		f.missing(name, "Double")
	}
	return f.Float(name, JavaDouble, 0)
}

// Bool returns a flag, or def: true, on, yes and 1, or false, off, no and 0, in
// any case.
func (f *Form) Bool(name, javaType string, def bool) bool {
	value := f.Text(name, "")
	switch strings.ToLower(value) {
	case "":
		return def
	case "true", "on", "yes", "1":
		return true
	case "false", "off", "no", "0":
		return false
	}
	f.mismatch(name, value, javaType)
	return def
}

// NeedBool returns a flag that must be there.
func (f *Form) NeedBool(name string) bool {
	if f.Text(name, "") == "" {
		f.missing(name, "Boolean")
	}
	return f.Bool(name, JavaBoolean, false)
}

func (f *Form) missing(name, kind string) {
	if f.first != nil {
		return
	}
	if f.name != "" {
		f.first = Missing("Required parameter '" + name + "' type " + kind + " is not present")
		return
	}
	f.first = Missing("Required request parameter '" + name + "' for method parameter type " + kind + " is not present")
}

func (f *Form) mismatch(name, value, javaType string) {
	m := mismatch(name, value, javaType)
	switch {
	case f.name != "":
		f.wrong = append(f.wrong, m)
	case f.first == nil:
		f.first = &ParamError{m}
	}
}

// Refuse makes err the fault, unless there is one already.
func (f *Form) Refuse(err error) {
	if f.first == nil {
		f.first = err
	}
}
