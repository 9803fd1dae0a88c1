package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestCoreHasNoClockAndNoGoroutines holds the core to being a function of its
// commands.
func TestCoreHasNoClockAndNoGoroutines(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	for _, p := range list(t) {
		if !p.ours() || !inTree(p.name(), "internal/registry") {
			continue
		}
		for _, s := range sources(t, p) {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a go statement; the core runs in its caller's goroutine", s.at(n))
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clock, n.Sel.Name) {
						t.Errorf("%s: time.%s; the time is in the command", s.at(n), n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, p := range list(t) {
		if !p.ours() {
			continue
		}
		for _, s := range sources(t, p) {
			for _, d := range s.tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: an init function; what a package needs comes through its constructor", s.at(f))
				}
			}
		}
	}
}

// allowed are the package-level variables that are no constant tables and yet
// may be, by package and name.
var allowed = map[string]string{
	"internal/httpapi.unreadable": "a route that is compared by its address and never written to",
}

// TestNoMutableState finds package-level variables that a second server in the
// process would share. Tables that are never written, errors, compiled patterns
// and pools are fine.
func TestNoMutableState(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range list(t) {
		if !p.ours() || inTree(p.name(), "bench") {
			continue
		}
		files := sources(t, p)
		written := writes(files)
		for _, s := range files {
			for _, v := range packageVars(s) {
				id := p.name() + "." + v.name
				seen[id] = true
				if fault := v.fault(written); fault != "" && allowed[id] == "" {
					t.Errorf("%s: %s %s; a second server in the process would share it", s.at(v.node), id, fault)
				}
			}
		}
	}
	for id := range allowed {
		if !seen[id] {
			t.Errorf("%s is allowed and does not exist", id)
		}
	}
}

// A packageVar is one variable of a declaration at the top level of a file.
type packageVar struct {
	name     string
	node     ast.Node
	typ      ast.Expr // may be nil
	value    ast.Expr // may be nil
	embedded bool     // filled by go:embed
}

func packageVars(s source) []packageVar {
	var vars []packageVar
	for _, d := range s.tree.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, spec := range decl.Specs {
			spec, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			embedded := embeds(decl.Doc) || embeds(spec.Doc)
			for i, name := range spec.Names {
				v := packageVar{name: name.Name, node: name, typ: spec.Type, embedded: embedded}
				if i < len(spec.Values) {
					v.value = spec.Values[i]
				}
				vars = append(vars, v)
			}
		}
	}
	return vars
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constructors make values that do not change.
var constructors = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "template.Must",
	"netip.MustParseAddr", "netip.MustParsePrefix", "netip.AddrFrom4", "reflect.TypeFor", "crc32.MakeTable", "maphash.MakeSeed", "unique.Make",
}

// fault says what is wrong with v; empty if nothing is.
func (v packageVar) fault(written map[string]bool) string {
	switch {
	case v.name == "_", v.embedded, isPool(v):
		return ""
	case written[v.name]:
		return "is written to"
	case v.value == nil:
		return "begins empty, so something must write to it"
	case isConstant(v.value):
		return ""
	default:
		return fmt.Sprintf("is made by a call that is not one of %s", strings.Join(constructors, ", "))
	}
}

// isPool reports whether v is a sync.Pool, whose content nobody can see.
func isPool(v packageVar) bool {
	typ := v.typ
	if lit, ok := v.value.(*ast.CompositeLit); ok {
		typ = lit.Type
	}
	return typ != nil && selector(typ) == "sync.Pool"
}

// isConstant reports whether an expression makes a value without shared state:
// literals, functions, and calls of constructors and conversions in them.
func isConstant(value ast.Expr) bool {
	constant := true
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // it runs later
		case *ast.CallExpr:
			if _, computed := n.Fun.(*ast.FuncLit); computed {
				return false // it makes a table; that nobody writes to it is seen elsewhere
			}
			constant = constant && (isConversion(n.Fun) || slices.Contains(constructors, selector(n.Fun)))
		}
		return constant
	})
	return constant
}

// isConversion reports whether a called expression is certainly a type.
func isConversion(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.ArrayType, *ast.MapType, *ast.InterfaceType, *ast.FuncType:
		return true
	case *ast.ParenExpr:
		_, pointer := fun.X.(*ast.StarExpr)
		return pointer
	case *ast.Ident:
		return slices.Contains([]string{"string", "byte", "rune", "int", "int64", "uint64", "uint32", "float64", "len", "min", "max"}, fun.Name)
	default:
		return false
	}
}

// selector writes pkg.Name, also of a generic function; empty for other expressions.
func selector(e ast.Expr) string {
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + sel.Sel.Name
}

// writes gathers the names that some function of the package assigns to, takes
// the address of, or clears. It does not know scopes: a local variable of the
// same name that is written counts too, and the cure is a better name.
func writes(files []source) map[string]bool {
	written := make(map[string]bool)
	mark := func(e ast.Expr) {
		if name := root(e); name != "" {
			written[name] = true
		}
	}
	for _, s := range files {
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if n.Tok != token.DEFINE {
						for _, left := range n.Lhs {
							mark(left)
						}
					}
				case *ast.IncDecStmt:
					mark(n.X)
				case *ast.UnaryExpr:
					if n.Op == token.AND {
						mark(n.X)
					}
				case *ast.CallExpr:
					if builtin, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && slices.Contains([]string{"delete", "clear", "copy"}, builtin.Name) {
						mark(n.Args[0])
					}
				}
				return true
			})
		}
	}
	return written
}

// root is the variable that an expression such as v.f[i] begins with.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}
