package arch

import (
	"go/parser"
	"go/token"
	"testing"
)

// TestMutableStateIsSeen tries the rule of TestNoMutableState on both sides.
func TestMutableStateIsSeen(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		fault      bool
	}{
		{"error", `var e = errors.New("x")`, false},
		{"table", `var e = map[string]int{"a": 1}`, false},
		{"table with conversions", `var e = []any{[]byte("a"), (*int)(nil)}`, false},
		{"computed table", `var e = func() (t [256]byte) { t[0] = 1; return }()`, false},
		{"pattern", `var e = regexp.MustCompile("x")`, false},
		{"assertion", `var _ io.Reader = file()`, false},
		{"pool", `var e sync.Pool`, false},
		{"pool with New", `var e = sync.Pool{New: func() any { return counter() }}`, false},
		{"embedded", "//go:embed x\nvar e []byte", false},
		{"function", `var e = func() int { return counter() }`, false},

		{"empty", `var e int`, true},
		{"lock", `var e sync.Mutex`, true},
		{"made by a call", `var e = prometheus.NewRegistry()`, true},
		{"call within a table", `var e = []any{counter()}`, true},
		{"assigned", `var e = 1; func f() { e = 2 }`, true},
		{"counted", `var e = 1; func f() { e++ }`, true},
		{"item assigned", `var e = map[string]int{}; func f() { e["a"] = 1 }`, true},
		{"field assigned", `var e = T{}; func f() { e.a.b = 1 }`, true},
		{"deleted from", `var e = map[string]int{}; func f() { delete(e, "a") }`, true},
		{"address taken", `var e = T{}; func f() *T { return &e }`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := token.NewFileSet()
			tree, err := parser.ParseFile(files, "x.go", "package p\n"+tt.code, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			s := source{&listedPackage{}, files, tree}
			vars := packageVars(s)
			if len(vars) != 1 {
				t.Fatalf("%d variables, want 1", len(vars))
			}
			if fault := vars[0].fault(writes([]source{s})); (fault != "") != tt.fault {
				t.Errorf("fault %q, want one: %v", fault, tt.fault)
			}
		})
	}
}

func TestLongestRowCounts(t *testing.T) {
	if r := rowOf("internal/cli/config"); r == nil || r.tree != "internal/cli" {
		t.Errorf("got %+v, want the row of internal/cli", r)
	}
	if r := rowOf("internal/climate"); r != nil {
		t.Errorf("got %+v for a package whose name only begins like another", r)
	}
	if r := rowOf("internal/registry"); r.allows("internal/naming") || !rowOf("server").allows("internal/naming") {
		t.Error("the rows do not tell inner from outer packages")
	}
}
