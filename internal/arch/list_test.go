package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rollcall-registry/rollcall"

// A listedPackage is what `go list` tells of a package.
type listedPackage struct {
	ImportPath     string
	Dir            string
	Doc            string
	Standard       bool
	GoFiles        []string
	IgnoredGoFiles []string // of other platforms
	Imports        []string
}

// ours reports whether p belongs to this module.
func (p *listedPackage) ours() bool { return inTree(p.ImportPath, module) }

// name is the path of p within the module.
func (p *listedPackage) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// library reports whether path is neither ours nor of the standard library.
func library(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".") && !inTree(path, module)
}

// inTree reports whether path is root or lies below it.
func inTree(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// list returns all packages of the module and all that they need, by path.
func list(t *testing.T) map[string]*listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,Doc,Standard,GoFiles,IgnoredGoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	packages := make(map[string]*listedPackage)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = &p
	}
}

// reach returns the packages that p needs, directly and through others.
func reach(packages map[string]*listedPackage, p *listedPackage) map[string]bool {
	reached := make(map[string]bool)
	var visit func(path string)
	visit = func(path string) {
		if reached[path] || packages[path] == nil {
			return
		}
		reached[path] = true
		for _, next := range packages[path].Imports {
			visit(next)
		}
	}
	for _, path := range p.Imports {
		visit(path)
	}
	return reached
}

// A source is one parsed file that is no test.
type source struct {
	pkg   *listedPackage
	files *token.FileSet
	tree  *ast.File
}

// sources parses the files of one package, for every platform.
func sources(t *testing.T, p *listedPackage) []source {
	t.Helper()
	var parsed []source
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, source{p, files, tree})
	}
	return parsed
}

// at tells where a node stands.
func (s source) at(n ast.Node) string {
	pos := s.files.Position(n.Pos())
	return s.pkg.name() + "/" + filepath.Base(pos.Filename) + ":" + strconv.Itoa(pos.Line)
}
