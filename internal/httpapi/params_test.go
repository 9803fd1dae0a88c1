package httpapi

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func parsed(query, form string) *Params {
	p := new(Params)
	p.parse([]byte(query))
	p.parse([]byte(form))
	return p
}

func TestParse(t *testing.T) {
	tests := []struct {
		query, form string
		want        string // name=value pairs as Go quotes them
	}{
		{"", "", ``},
		{"a=1&b=2", "", `a="1" b="2"`},
		{"a=1", "a=2&b=3", `a="1" a="2" b="3"`},
		{"a", "", `a=""`},
		{"=1", "", `="1"`},
		{"&&a=1&", "", `a="1"`},
		{"a=1=2", "", `a="1=2"`},
		{"a=b+c%20d", "", `a="b c d"`},
		{"a%3db=%26", "", `a=b="&"`},
		{"a=1;b=2", "", `a="1;b=2"`}, // no separator (live 1.4.8)
		{"a=100%", "", `a="100%"`},
		{"a=%2", "", `a="%2"`},
		{"a=%zz%41", "", `a="%zzA"`},
		{"a=%%41", "", `a="%A"`},
		{"a=DEFAULT_GROUP@@s", "", `a="DEFAULT_GROUP@@s"`},
		{"", `beat={"ip":"10.0.0.7","a":"50%"}`, `beat="{\"ip\":\"10.0.0.7\",\"a\":\"50%\"}"`}, // Go 1.x does not escape
		{"a=%ff%fe", "", `a="` + "\ufffd\ufffd" + `"`},                                         // live 1.4.8: route-query-utf8
		{"a=\xd6\xd0", "", `a="` + "\ufffd\ufffd" + `"`},
		{"a=%e4%b8%ad", "", `a="中"`},
		{"a=%00b", "", `a="\x00b"`},
	}
	for _, tt := range tests {
		var got []string
		for name, value := range parsed(tt.query, tt.form).All() {
			got = append(got, fmt.Sprintf("%s=%q", name, value))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("parse(%q, %q) = %s, want %s", tt.query, tt.form, s, tt.want)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	p := parsed(strings.Repeat("a=1&", 10*maxParams), "")
	if len(p.pairs) != maxParams {
		t.Errorf("%d pairs, want %d", len(p.pairs), maxParams)
	}
}

func TestTextGetters(t *testing.T) {
	const absent = "(absent)"
	tests := []struct {
		value              string // of parameter v, escaped
		raw, get, optional string // what the getters return; optional with default D
		required           string // or the error
	}{
		{absent, absent, absent, "D", "Param 'v' is required."},
		{"", "", "", "D", "Param 'v' is required."},
		{"%20", " ", "", "D", ""}, // blanks pass as "" (live 1.4.8)
		{"%09%0a", "\t\n", "", "D", ""},
		{"%e3%80%80", "\u3000", "\u3000", "D", "\u3000"}, // white space to Java, not trimmed
		{"%00", "\x00", "", "", ""},                      // trimmed, not white space (live 1.4.8: route-query-utf8)
		{"x", "x", "x", "x", "x"},
		{"%20x%20y%20", " x y ", "x y", "x y", "x y"},
	}
	for _, tt := range tests {
		query := "v=" + tt.value
		if tt.value == absent {
			query = "w=1&V=2" // names are case sensitive
		}
		p := parsed(query, "")
		show := func(value string, sent bool) string {
			if !sent {
				return absent
			}
			return value
		}
		if got := show(p.Raw("v")); got != tt.raw {
			t.Errorf("%s: Raw = %q, want %q", query, got, tt.raw)
		}
		if got := show(p.Get("v")); got != tt.get {
			t.Errorf("%s: Get = %q, want %q", query, got, tt.get)
		}
		if got := p.Optional("v", "D"); got != tt.optional {
			t.Errorf("%s: Optional = %q, want %q", query, got, tt.optional)
		}
		required, err := p.Required("v")
		if err != nil {
			required = err.Error()
		}
		if required != tt.required {
			t.Errorf("%s: Required = %q, want %q", query, required, tt.required)
		}
	}
}

func TestFirstValueCounts(t *testing.T) {
	p := parsed("ip=1.1.1.1&ip=2.2.2.2&weight=", "weight=3&ip=3.3.3.3&port=80")
	if got, _ := p.Get("ip"); got != "1.1.1.1" {
		t.Errorf("ip = %q, want the first of the query", got)
	}
	if got := p.Optional("weight", "1"); got != "1" {
		t.Errorf("weight = %q, want the default: the query's empty value hides the form's", got)
	}
	if got, _ := p.Get("port"); got != "80" {
		t.Errorf("port = %q, want the form's", got)
	}
}

func TestEncoding(t *testing.T) {
	tests := []struct{ query, want string }{
		{"v=k%3D%E4%B8%AD&encoding=GBK", "k=涓\ufffd"}, // live 1.4.8: reg-encoding
		{"encoding=GBK&v=%d6%d0", "锟斤拷"},              // live 1.4.8: route-query-utf8
		{"v=%E4%B8%AD&encoding=nope", "中"},            // unknown: ignored
		{"v=%E4%B8%AD&encoding=utf-8", "中"},
		{"v=%E4%B8%AD&encoding=UTF-8", "中"},
		{"v=%E4%B8%AD&encoding=", "中"},
		{"v=abc&encoding=GBK", "abc"},
		{"v=%E4%B8%AD", "中"},
	}
	for _, tt := range tests {
		p := parsed(tt.query, "")
		if got, _ := p.Get("v"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.query, got, tt.want)
		}
	}
}

func TestInt(t *testing.T) {
	const def = 7
	tests := []struct {
		query string
		want  int
		err   string
	}{
		{"", def, ""},
		{"port=", def, ""},
		{"port=%20", def, ""},
		{"port=8080", 8080, ""},
		{"port=%208080%20", 8080, ""},
		{"port=%2B80", 80, ""},
		{"port=-1", -1, ""},
		{"port=70000", 70000, ""},
		{"port=abc", 0, `For input string: "abc"`},
		{"port=1.0", 0, `For input string: "1.0"`},
		{"port=1_0", 0, `For input string: "1_0"`},
		{"port=0x10", 0, `For input string: "0x10"`},
		{"port=2147483648", 0, `For input string: "2147483648"`},
	}
	for _, tt := range tests {
		got, err := parsed(tt.query, "").Int("port", def)
		if got != tt.want || text(err) != tt.err {
			t.Errorf("%s: Int = %d, %q, want %d, %q", tt.query, got, text(err), tt.want, tt.err)
		}
	}
	if _, err := parsed("", "").RequiredInt("port"); text(err) != "Param 'port' is required." {
		t.Errorf("RequiredInt of nothing: %v", err)
	}
	if _, err := parsed("port=%20", "").RequiredInt("port"); text(err) != `For input string: ""` { // live 1.4.8
		t.Errorf("RequiredInt of a blank: %v", err)
	}
	if got := parsed("pageNo=x", "").IntOrZero("pageNo"); got != 0 {
		t.Errorf("IntOrZero of text = %d, want 0", got)
	}
}

func TestFloat(t *testing.T) {
	tests := []struct {
		value string
		want  float64
		err   bool
	}{
		{"", 1, false},
		{"%20", 1, false},
		{"0", 0, false},
		{"0.5", 0.5, false},
		{".5", 0.5, false},
		{"5.", 5, false},
		{"-1", -1, false},
		{"1e2", 100, false},
		{"%207%20", 7, false},
		// Java's own spellings (live 1.4.8: reg-weight-odd).
		{"5d", 5, false},
		{"5F", 5, false},
		{"0x1p3", 8, false},
		{"0x1p3f", 8, false},
		{"NaN", math.NaN(), false},
		{"Infinity", math.Inf(1), false},
		{"-Infinity", math.Inf(-1), false},
		{"1e999", math.Inf(1), false},
		{"abc", 0, true},
		{"1,5", 0, true},
		{"inf", 0, true},
		{"nan", 0, true},
		{"1_0", 0, true},
		{"0x1f", 0, true},
		{"-", 0, true},
		{"%2B-1", 0, true},
		{"1%202", 0, true},
	}
	for _, tt := range tests {
		got, err := parsed("weight="+tt.value, "").Float("weight", 1)
		if (err != nil) != tt.err || got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("Float(%s) = %v, %v, want %v, error %v", tt.value, got, err, tt.want, tt.err)
		}
	}
}

func TestBools(t *testing.T) {
	tests := []struct {
		value           string
		lenient, strict bool
		bound           string // true, false or error
	}{
		{"true", true, true, "true"},
		{"True", true, true, "true"}, // Python
		{"TRUE", true, true, "true"},
		{"t", true, false, "error"},
		{"on", true, false, "true"},
		{"yes", true, false, "true"},
		{"Y", true, false, "error"},
		{"1", false, false, "true"}, // not true, unlike Go's own rule (trap 16)
		{"false", false, false, "false"},
		{"False", false, false, "false"},
		{"0", false, false, "false"},
		{"off", false, false, "false"},
		{"no", false, false, "false"},
		{"x", false, false, "error"},
	}
	for _, tt := range tests {
		p := parsed("b="+tt.value, "")
		if got := p.BoolLenient("b", !tt.lenient); got != tt.lenient {
			t.Errorf("BoolLenient(%s) = %v", tt.value, got)
		}
		if got := p.BoolStrict("b", !tt.strict); got != tt.strict {
			t.Errorf("BoolStrict(%s) = %v", tt.value, got)
		}
		bound, err := p.BoundBool("b", tt.bound != "true")
		got := fmt.Sprint(bound)
		if err != nil {
			got = "error"
		}
		if got != tt.bound {
			t.Errorf("BoundBool(%s) = %s, want %s", tt.value, got, tt.bound)
		}
	}
	for _, query := range []string{"", "b=", "b=%20"} {
		p := parsed(query, "")
		if !p.BoolLenient("b", true) || !p.BoolStrict("b", true) {
			t.Errorf("%q: the default is not taken", query)
		}
	}
}

// TestBound has the texts of answers of 1.4.8 (console-ns-bad,
// catalog-instances-bad, reference http-api-v1 1.5).
func TestBound(t *testing.T) {
	check := func(err error, status int, causes ...string) {
		t.Helper()
		var fault *ParamError
		if !errors.As(err, &fault) || fault.Status() != status || !slices.Equal(fault.Causes(), causes) {
			t.Errorf("got %v, want %d %q", err, status, causes)
		}
	}
	p := parsed("empty=&pageNo=x&flag=maybe", "")
	_, err := p.Bound("namespaceId")
	check(err, 500, "Required request parameter 'namespaceId' for method parameter type String is not present")
	if got, err := p.Bound("empty"); got != "" || err != nil {
		t.Errorf("an empty text is a value: %q, %v", got, err)
	}
	_, err = p.BoundInt("pageSize")
	check(err, 500, "Required request parameter 'pageSize' for method parameter type int is not present")
	_, err = p.BoundInt("pageNo")
	check(err, 500, "Failed to convert value of type 'java.lang.String' to required type 'int'; nested exception is "+
		`java.lang.NumberFormatException: For input string: "x"`, `For input string: "x"`)
	_, err = p.BoundBool("flag", false)
	check(err, 500, "Failed to convert value of type 'java.lang.String' to required type 'boolean'; nested exception is "+
		"java.lang.IllegalArgumentException: Invalid boolean value [maybe]", "Invalid boolean value [maybe]")
	if got, err := p.BoundIntOptional("empty", 9); got != 9 || err != nil {
		t.Errorf("an empty number with a default: %d, %v", got, err)
	}
	if got := p.BoundOptional("empty", "d"); got != "d" {
		t.Errorf("an empty text with a default: %q", got)
	}
}

func TestErrorsRepeatLittle(t *testing.T) {
	_, err := parsed("port="+strings.Repeat("%ff9", 100_000), "").Int("port", 0)
	if n := len(err.Error()); n > 4*errorValueBytes {
		t.Errorf("the error has %d bytes", n)
	}
}

func TestCheckText(t *testing.T) {
	for _, good := range []string{"", "orders", "providers:com.example.Greeter$IGreeter::", "服务", "a b", "\u00e9", "\U0001f600"} {
		if err := CheckText("serviceName", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"a\nb", "a\tb", "a\x00", "\x7f", "\u0085", "\u2028", "a\xffb", "\ufffd"} {
		err := CheckText("serviceName", bad)
		var fault *ParamError
		if !errors.As(err, &fault) || fault.Status() != 400 || !strings.HasPrefix(err.Error(), "Param 'serviceName' is illegal, ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestIsForm(t *testing.T) {
	for _, form := range []string{
		"", "application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded", "application/x-www-form-urlencoded; charset=UTF-8",
		"application/x-www-form-urlencoded;charset=utf8", " application/x-www-form-urlencoded ",
	} {
		if !isForm([]byte(form)) {
			t.Errorf("%q is not read as a form", form)
		}
	}
	for _, other := range []string{"application/json", "multipart/form-data; boundary=X", "text/plain", "application/x-www-form-urlencoded2"} {
		if isForm([]byte(other)) {
			t.Errorf("%q is read as a form", other)
		}
	}
}

// FuzzParams holds the parser against net/url wherever that accepts the input,
// and checks that it accepts everything else.
func FuzzParams(f *testing.F) {
	for _, s := range []string{"a=1&b=2", "a=%zz", "a=%E4%B8%AD&encoding=GBK", "=&=&a", "a=\xff%ff", "a;b=c", "a=+%20"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := parsed(query, "")
		for name, value := range p.All() {
			if strings.Contains(name+value, "\xff") {
				t.Errorf("%q: not UTF-8: %q=%q", query, name, value)
			}
			p.Optional(name, "")
			_, _ = p.Int(name, 0)
			_, _ = p.Float(name, 0)
			_, _ = p.BoundBool(name, false)
		}
		want, err := url.ParseQuery(query)
		if err != nil || len(p.pairs) == maxParams {
			return
		}
		for name, values := range want {
			clean := string([]rune(name))
			if got, sent := p.Raw(clean); !sent || got != string([]rune(values[0])) && clean == name {
				t.Errorf("%q: %q = %q (sent %v), want %q", query, name, got, sent, values[0])
			}
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
