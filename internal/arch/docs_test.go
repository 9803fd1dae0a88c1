package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests below hold the documents to the code: what they name must exist.

// repo is the root of the repository.
var repo = os.DirFS(filepath.Join("..", ".."))

// document returns the lines of a document.
func document(t *testing.T, path string) []string {
	t.Helper()
	text, err := fs.ReadFile(repo, path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// cells returns the cells of a row of a table, nil for other lines and for the
// line below a heading.
func cells(line string) []string {
	if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") {
		return nil
	}
	row := strings.Split(strings.Trim(line, "|"), "|")
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func spans(text string) []string {
	var found []string
	for _, match := range codeSpan.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestMechanismsExist reads the last two columns of docs/mechanisms.md and
// docs/sdk-faults.md: a path of the repository, and behind it what is declared there
// (Name, or Type.Member). A word that begins with a slash is a path of the HTTP API.
func TestMechanismsExist(t *testing.T) {
	for _, path := range []string{"docs/mechanisms.md", "docs/sdk-faults.md"} {
		declarationsExist(t, path)
	}
}

func declarationsExist(t *testing.T, path string) {
	t.Helper()
	declared := make(map[string]map[string]bool)
	rows := 0
	for n, line := range document(t, path) {
		row := cells(line)
		if len(row) == 0 || row[0] == "Nacos" || row[0] == "Fault" {
			continue
		}
		at := path + ":" + strconv.Itoa(n+1)
		if len(row) != 4 {
			t.Errorf("%s: %d cells, want 4", at, len(row))
			continue
		}
		rows++
		for _, cell := range row[2:] {
			checkPlaces(t, at, cell, declared)
		}
	}
	if rows < 15 {
		t.Errorf("%s: %d rows found, which is too few to be all", path, rows)
	}
}

// checkPlaces checks the code spans of a cell: a path, and behind it names that are
// declared there. It keeps in declared what it found out.
func checkPlaces(t *testing.T, at, cell string, declared map[string]map[string]bool) {
	t.Helper()
	path := ""
	for _, span := range spans(cell) {
		switch {
		case strings.HasPrefix(span, "/"):
		case strings.Contains(span, "/"):
			path = span
			if _, err := fs.Stat(repo, path); err != nil {
				t.Errorf("%s: %s does not exist", at, path)
			}
		case !strings.HasSuffix(path, ".go"):
			t.Errorf("%s: %s is behind no Go file", at, span)
		default:
			if declared[path] == nil {
				declared[path] = declarations(t, path)
			}
			if !declared[path][span] {
				t.Errorf("%s: %s declares no %s", at, path, span)
			}
		}
	}
}

// TestComplaintsAreAnswered reads the last table of docs/sdk.md, whose last column has
// places as docs/mechanisms.md has them, behind a few words.
func TestComplaintsAreAnswered(t *testing.T) {
	declared := make(map[string]map[string]bool)
	answered := 0
	for n, line := range document(t, "docs/sdk.md") {
		row := cells(line)
		if len(row) != 3 || row[0] == "#" {
			continue
		}
		answered++
		at := "docs/sdk.md:" + strconv.Itoa(n+1)
		if row[0] != strconv.Itoa(answered) {
			t.Errorf("%s: number %s, want %d", at, row[0], answered)
		}
		cell := row[2]
		if i := strings.Index(cell, "/"); i < 0 {
			t.Errorf("%s: no test and no place", at)
		} else {
			checkPlaces(t, at, cell[strings.LastIndex(cell[:i], "`"):], declared)
		}
	}
	if answered != 43 {
		t.Errorf("%d complaints are answered, want 43", answered)
	}
}

// declarations returns what a file declares: functions, types, constants,
// variables, and Type.Member for methods and fields.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	text, err := fs.ReadFile(repo, path)
	if err != nil {
		return names // reported by the caller
	}
	tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names[receiver(decl)+decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
					addMembers(names, spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver returns "Type." for a method and "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

func addMembers(names map[string]bool, spec *ast.TypeSpec) {
	var fields *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names[spec.Name.Name+"."+name.Name] = true
		}
	}
}

// TestExceptionsAreExplained checks that docs/divergence.md has the reason of each
// recorded case that is not replayed as it was recorded, and that each case which
// a row names is such a one.
func TestExceptionsAreExplained(t *testing.T) {
	const list = "test/golden/testdata/except.txt"
	named := make(map[string]bool)
	for n, line := range document(t, "docs/divergence.md") {
		row := cells(line)
		if len(row) == 0 || row[0] == "Nacos" {
			continue
		}
		if len(row) != 4 {
			t.Errorf("docs/divergence.md:%d: %d cells, want 4", n+1, len(row))
			continue
		}
		for _, id := range spans(row[3]) {
			named[id] = true
			if !slices.ContainsFunc(document(t, list), func(line string) bool { return strings.HasPrefix(line, id+" ") }) {
				t.Errorf("docs/divergence.md:%d: %s is no case of %s", n+1, id, list)
			}
		}
	}
	for _, line := range document(t, list) {
		id, _, _ := strings.Cut(line, " ")
		if id != "" && id != "#" && !named[id] {
			t.Errorf("docs/divergence.md has no row that names %s", id)
		}
	}
}

var metricName = regexp.MustCompile(`rollcall_([a-z_]+)`)

// TestMetricsExist checks that each metric which docs/operations.md names is one
// that the code makes. Histograms are named with what Prometheus appends.
func TestMetricsExist(t *testing.T) {
	made := literals(t, "internal/metrics", "server")
	for n, line := range document(t, "docs/operations.md") {
		for _, match := range metricName.FindAllStringSubmatch(line, -1) {
			name := match[1]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if base := strings.TrimSuffix(name, suffix); made[base] {
					name = base
				}
			}
			if !made[name] {
				t.Errorf("docs/operations.md:%d: there is no metric rollcall_%s", n+1, name)
			}
		}
	}
}

// literals returns the strings in the Go files of folders, tests left out.
func literals(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for _, folder := range folders {
		files, err := fs.Glob(repo, folder+"/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(repo, path)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						found[text] = true
					}
				}
				return true
			})
		}
	}
	return found
}

var settingName = regexp.MustCompile(`^[a-z]+\.[a-z-]+$`)

// TestSettingsExist checks that each setting which a document names is in
// docs/config.md, which is made from the code. A dotted word counts as one when it
// begins with the name of a section there.
func TestSettingsExist(t *testing.T) {
	sections, settings := make(map[string]bool), make(map[string]bool)
	for _, line := range document(t, "docs/config.md") {
		if section, ok := strings.CutPrefix(line, "## `"); ok {
			sections[strings.TrimSuffix(section, "`")] = true
		}
		if setting, ok := strings.CutPrefix(line, "### "); ok {
			settings[setting] = true
		}
	}
	for _, path := range documents(t) {
		for n, line := range document(t, path) {
			for _, span := range spans(line) {
				section, _, _ := strings.Cut(span, ".")
				if settingName.MatchString(span) && sections[section] && !settings[span] && !strings.HasSuffix(span, ".go") {
					t.Errorf("%s:%d: there is no setting %s", path, n+1, span)
				}
			}
		}
	}
}

// documents returns the paths of all documents but the decisions, which tell of
// the time when they were made, and those at the root.
func documents(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"docs/*.md", "docs/protocol/*.md"} {
		found, err := fs.Glob(repo, pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// TestLinksLead checks the links between documents and to files.
func TestLinksLead(t *testing.T) {
	for _, path := range documents(t) {
		for n, line := range document(t, path) {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				target := match[1]
				if strings.Contains(target, "://") {
					continue
				}
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
				if _, err := fs.Stat(repo, target); err != nil {
					t.Errorf("%s:%d: %s does not exist", path, n+1, target)
				}
			}
		}
	}
}
