package registry

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"
)

// The texts are those of the recordings reg-meta-* of Nacos 1.4.8, and their kin.
func TestParseMetadata(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Metadata // "refused" when the text is
	}{
		{``, ``},
		{`  `, ``},
		{`{}`, ``},
		{`null`, ``},
		{`{"a":"1","a":"2"}`, `{"a":"2"}`},
		{`{"z":"1","a":"2","m":"3"}`, `{"a":"2","m":"3","z":"1"}`},
		{`{"n":1,"f":1.50,"b":true,"c":false,"z":null,"e":1e5}`, `{"b":"true","c":"false","e":"1e5","f":"1.50","n":"1"}`},
		{`{"名":"值€😀","q":"a\"b<>&"}`, `{"q":"a\"b<>&","名":"值€😀"}`},
		{`{"a":"\ud83d\ude00"}`, `{"a":"😀"}`},
		{`{"a":"\ud800"}`, `{"a":"�"}`},
		{`{"a":"\u0000\b\u001f\u2028/"}`, `{"a":"\u0000\u0008\u001f` + "\u2028" + `/"}`},
		{` {"a":"1"} `, `{"a":"1"}`},

		{`a=1`, `{"a":"1"}`},
		{`a=1,b=2`, `{"a":"1","b":"2"}`},
		{`a=1,a=2`, `{"a":"2"}`},
		{`=1`, `{"":"1"}`},
		{`,`, ``},
		{`a=1,`, `{"a":"1"}`},
		{`a=1=`, `{"a":"1"}`},
		{` a = 1 `, `{" a ":" 1 "}`},
		{`["a=b"]`, `{"[\"a":"b\"]"}`},
		{"a\xff=\xfe", `{"a�":"�"}`},
		{"a\x00=\x7f", `{"a\u0000":"` + "\x7f" + `"}`},

		{`[]`, `refused`},
		{`"a"`, `refused`},
		{`a`, `refused`},
		{`a=`, `refused`},
		{`==`, `refused`},
		{`a=1=2`, `refused`},
		{`a=1,,b=2`, `refused`},
		{`,a=1`, `refused`},
		{`a=1,b`, `refused`},
		{`{"o":{"x":1}}`, `refused`},
		{`{"o":[1,2]}`, `refused`},
		{`{"a":"1"`, `refused`},
		{`{"a":"1"} {"b":"2"}`, `refused`},
	} {
		got, err := ParseMetadata(tt.text)
		var refusal *Error
		switch {
		case tt.want == "refused":
			if !errors.As(err, &refusal) || refusal.Code != InvalidMetadata || refusal.Value != tt.text {
				t.Errorf("%q: got %q, %v; want it refused", tt.text, got, err)
			}
		case err != nil || got != tt.want:
			t.Errorf("%q: got %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestMetadataAccess(t *testing.T) {
	m, err := ParseMetadata(`{"b":"2","a":"x\"y","":"empty","c":""}`)
	if err != nil {
		t.Fatal(err)
	}
	if m.Len() != len(`bax"yemptyc2`) {
		t.Errorf("%d characters", m.Len())
	}
	for key, want := range map[string]string{"a": `x"y`, "b": "2", "": "empty", "c": ""} {
		if got, ok := m.Get(key); !ok || got != want {
			t.Errorf("Get(%q) = %q, %v; want %q", key, got, ok, want)
		}
	}
	if got, ok := m.Get("d"); ok {
		t.Errorf("Get(d) = %q, want nothing", got)
	}
	var keys []string
	for k := range m.All() {
		if k == "c" {
			break
		}
		keys = append(keys, k)
	}
	if got := strings.Join(keys, ","); got != ",a,b" {
		t.Errorf("keys %q, want them sorted", got)
	}
	if got := m.With(NewMetadata(map[string]string{"b": "3", "d": "4"})); got != `{"":"empty","a":"x\"y","b":"3","c":"","d":"4"}` {
		t.Errorf("With: %s", got)
	}
	if got := m.Without(NewMetadata(map[string]string{"a": "", "z": ""})); got != `{"":"empty","b":"2","c":""}` {
		t.Errorf("Without: %s", got)
	}
	if got := m.Without(m); got != "" {
		t.Errorf("Without itself: %q, want the empty map", got)
	}
	if got := string(Metadata("").AppendJSON(nil)); got != "{}" {
		t.Errorf("the empty map is %s", got)
	}
	if got := Metadata("").Map(); got == nil || len(got) != 0 {
		t.Errorf("Map of the empty map: %v", got)
	}
}

// Keys that are the same once invalid UTF-8 is replaced are one key, always with
// the same value, so that equal maps stay equal values.
func TestMetadataKeysBecomeEqual(t *testing.T) {
	for range 20 {
		m := NewMetadata(map[string]string{"k\xff": "2", "k\xfe": "1", "k\ufffd": "0"})
		if m != `{"k�":"0"}` {
			t.Fatalf("got %s", m)
		}
	}
}

func TestCheckMetadata(t *testing.T) {
	for _, tt := range []struct {
		limit int
		m     Metadata
		ok    bool
	}{
		{0, NewMetadata(map[string]string{"a": strings.Repeat("x", 9999)}), true},
		{4, NewMetadata(map[string]string{"a": "xyz"}), true},
		{4, NewMetadata(map[string]string{"ä": "üöß"}), true},
		{4, NewMetadata(map[string]string{"a": "\n\n\n"}), true},
		{4, NewMetadata(map[string]string{"a": "xyzz"}), false},
		{4, NewMetadata(map[string]string{"a": "xy", "b": "z"}), false},
	} {
		err := Limits{Metadata: tt.limit}.CheckMetadata(tt.m)
		var refusal *Error
		if (err == nil) != tt.ok || (!tt.ok && (!errors.As(err, &refusal) || refusal.Code != MetadataTooLarge)) {
			t.Errorf("%d characters for %.20s: %v, want ok %v", tt.limit, tt.m, err, tt.ok)
		}
	}
}

func TestAppendJSONString(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"\"\\/", `"\"\\/"`},
		{"\n\r\t\b\f\x00\x1f\x7f", `"\n\r\t\u0008\u000c\u0000\u001f` + "\x7f" + `"`},
		{"<>&", `"<>&"`},
		{"\u2028é中😀\ufffd", "\"\u2028é中😀\ufffd\""},
		{"a\xffb\xc0\xaf", "\"a\ufffdb\ufffd\ufffd\""},
		{"\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\""}, // a surrogate is no UTF-8
	} {
		got := string(AppendJSONString(nil, tt.text))
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != strings.ToValidUTF8(back, "?") {
			t.Errorf("%q: %s is no JSON string: %v", tt.text, got, err)
		}
	}
}

// checkMetadata holds what is true of every Metadata that the package makes.
func checkMetadata(t *testing.T, m Metadata) {
	t.Helper()
	var decoded map[string]string
	if err := json.Unmarshal([]byte(m.JSON()), &decoded); err != nil {
		t.Fatalf("%q is no JSON: %v", m, err)
	}
	if got := m.Map(); !maps.Equal(got, decoded) {
		t.Errorf("All of %q yields %q, want %q", m, got, decoded)
	}
	if NewMetadata(decoded) != m {
		t.Errorf("%q is not the one form of its map", m)
	}
	var back Metadata
	data, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || back != m {
		t.Errorf("%q came back as %q: %v", m, back, err)
	}
	last := ""
	for k, v := range m.All() {
		if k < last || !utf8.ValidString(k) || !utf8.ValidString(v) {
			t.Errorf("%q: key %q is out of order or no UTF-8", m, k)
		}
		last = k
	}
}

func FuzzParseMetadata(f *testing.F) {
	for _, text := range append(plainTexts, `a=1,b=2`, "a\xff=1,a\xfe=2", `["a=b"]`, `{"n":1,"z":null}`, `{"a":"\ud800"}`) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetadata(text)
		if err != nil {
			return
		}
		checkMetadata(t, m)
		if again, err := ParseMetadata(m.JSON()); err != nil || again != m {
			t.Errorf("%q parsed as %q, %v; want itself", m, again, err)
		}
	})
}

func FuzzMetadataJSON(f *testing.F) {
	for _, text := range []string{`{}`, `null`, `{"a":"1"}`, `{"a":null}`, `{"a":"\u0000\ud800"}`, `{"b":"","a":"\\"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m Metadata
		if json.Unmarshal([]byte(text), &m) == nil {
			checkMetadata(t, m)
		}
	})
}
