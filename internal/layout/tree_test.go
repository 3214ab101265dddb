package layout

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the module's directory, seen from this one.
const root = "../.."

// source is a file of Go or assembly in the tree.
type source struct {
	path      string // relative to the module, with slashes
	text      []byte
	lines     int
	generated bool
	test      bool
	imports   []string // of the module, relative to it
	std       []string // all others
	ast       *ast.File
}

func (s *source) room() string { return path.Dir(s.path) }

// readTree returns every source file of the module, whatever its build tags.
func readTree(t *testing.T) []*source {
	t.Helper()
	sources, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 50 {
		t.Fatalf("only %d sources below %s; the walk is broken", len(sources), root)
	}
	return sources
}

// parsed walks the tree once for all tests.
var parsed = sync.OnceValues(func() (sources []*source, _ error) {
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, root), string(filepath.Separator)))
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "runs") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := path.Ext(rel); ext != ".go" && ext != ".s" {
			return nil
		}
		s, err := readSource(name, rel)
		sources = append(sources, s)
		return err
	})
	return sources, err
})

func readSource(name, rel string) (*source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	s := &source{
		path:      rel,
		text:      text,
		lines:     bytes.Count(text, []byte("\n")),
		generated: bytes.HasPrefix(first, []byte("// Code generated ")) && bytes.HasSuffix(first, []byte("DO NOT EDIT.")),
		test:      strings.HasSuffix(rel, "_test.go"),
	}
	if path.Ext(rel) != ".go" {
		return s, nil
	}
	if s.ast, err = parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range s.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		switch relative, ok := strings.CutPrefix(imported, Module+"/"); {
		case ok:
			s.imports = append(s.imports, relative)
		case imported == Module:
			s.imports = append(s.imports, ".")
		default:
			s.std = append(s.std, imported)
		}
	}
	return s, nil
}
