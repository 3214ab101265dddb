package layout

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// startsGoroutine reports whether a file has a go statement or a call of a method Go,
// as sync.WaitGroup and errgroup.Group have it.
func startsGoroutine(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				found = true
			}
		}
		return !found
	})
	return found
}

// TestGoroutinesAreDocumented wants every file that starts goroutines in
// docs/concurrency.md, and every file that is named there to start some.
func TestGoroutinesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "concurrency.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllSubmatch(text, -1) {
		named[string(m[1])] = true
	}
	for _, s := range readTree(t) {
		switch starts := s.ast != nil && !s.test && startsGoroutine(s.ast); {
		case starts && !named[s.path]:
			t.Errorf("%s starts goroutines; say in docs/concurrency.md who owns what and how they end", s.path)
		case !starts && named[s.path]:
			t.Errorf("docs/concurrency.md names %s, which starts no goroutine; take it out", s.path)
		}
		delete(named, s.path)
	}
	for path := range named {
		t.Errorf("docs/concurrency.md names %s, which does not exist; say where its goroutines are now", path)
	}
}

// TestChangelogSaysThingsOnce wants no two paragraphs of the changelog that begin alike, as an old form beside its new one does.
func TestChangelogSaysThingsOnce(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		start := paragraph[:min(100, len(paragraph))]
		if seen[start] {
			t.Errorf("CHANGELOG.md has two paragraphs that begin with %q; keep one", start)
		}
		seen[start] = true
	}
}

// TestDivergenceNamesFiles wants every path in docs/divergence.md to exist.
func TestDivergenceNamesFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "divergence.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`([a-z0-9_]+/[a-z0-9_/]+(?:\\.go)?)`").FindAllSubmatch(text, -1)
	if len(paths) < 20 {
		t.Fatalf("only %d paths; the pattern is broken", len(paths))
	}
	for _, m := range paths {
		if _, err := os.Stat(filepath.Join(root, string(m[1]))); err != nil {
			t.Errorf("docs/divergence.md names %s: %v; say where it is now", m[1], err)
		}
	}
}
