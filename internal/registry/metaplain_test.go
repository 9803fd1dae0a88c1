package registry

import "testing"

var plainTexts = []string{
	`{}`, ` { } `, `{"a":"1"}`, `{"b":"2","a":"1"}`, ` { "b" : "2" , "a" : "1" } ` + "\n", `{"":""}`,
	`{"a":"ü中😀"}`, `{"b":"1","a":"2","c":"3","ab":"4"}`,
	// Not plain: left to the general decoder, or refused by it.
	`{"a":"1","a":"2"}`, `{"a":"x\n"}`, `{"a":1}`, `{"a":null}`, `{"a":{}}`, `{"a":"1"`, `{"a":"1"}x`, `{"a":"1",}`,
	`{"a" "1"}`, `{,}`, `[]`, `null`, ``, "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}", `a=1,b=2`, `{"a":"1"}{}`,
}

func TestPlainMetadata(t *testing.T) {
	for _, text := range plainTexts {
		checkPlain(t, text)
	}
	if m, ok := parsePlainMetadata(` {"b":"2", "a":"1"} `); !ok || m != `{"a":"1","b":"2"}` {
		t.Errorf("got %q %v, want the sorted object", m, ok)
	}
}

// checkPlain holds the fast decoder to the general one.
func checkPlain(t *testing.T, text string) {
	t.Helper()
	got, ok := parsePlainMetadata(text)
	if !ok {
		return
	}
	want, ok := parseMetadataJSON(text)
	if !ok || got != NewMetadata(want) {
		t.Errorf("%q: got %q, want %q %v", text, got, NewMetadata(want), ok)
	}
}

func FuzzPlainMetadata(f *testing.F) {
	for _, text := range plainTexts {
		f.Add(text)
	}
	f.Fuzz(checkPlain)
}

func BenchmarkParseMetadata(b *testing.B) {
	const text = `{"version":"1.0","zone":"a","side":"provider"}`
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseMetadata(text); err != nil {
			b.Fatal(err)
		}
	}
}
