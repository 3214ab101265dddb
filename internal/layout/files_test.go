package layout

import (
	"go/ast"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines          = 600  // of a hand-written file
	maxGeneratedLines = 5000 // of a generated file
	maxAssemblyLines  = 7000 // of a generated routine, which cannot be cut in two
	maxPackageFiles   = 20   // hand-written, without tests
	maxPackageLines   = 4000 // likewise
)

// TestFileSizes holds files to one concept each.
func TestFileSizes(t *testing.T) {
	for _, s := range readTree(t) {
		base := path.Base(s.path)
		switch limit := maxLines; {
		case s.generated:
			limit = maxGeneratedLines
			if path.Ext(base) == ".s" {
				limit = maxAssemblyLines
			}
			if s.lines > limit {
				t.Errorf("%s has %d lines, %d are allowed; let the generator write several files", s.path, s.lines, limit)
			}
			if !strings.HasPrefix(base, "z") {
				t.Errorf("%s is generated; its name must start with z", s.path)
			}
		case s.lines > limit:
			t.Errorf("%s has %d lines, %d are allowed; give each concept its own file", s.path, s.lines, limit)
		case path.Ext(base) == ".s":
			t.Errorf("%s is assembly without a generator; write it with internal/gen", s.path)
		}
	}
}

// atTheTop are the names in the module's directory beside Go files.
var atTheTop = []string{
	".ci", ".gitignore", ".golangci.yml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "RATIONALE.md", "README.md",
	"bench", "circuit", "clients", "cluster", "cmd", "codec", "compile", "configs", "dataset", "deploy", "docs", "em", "engine", "examples",
	"forest", "go.mod", "go.sum", "internal", "kernels", "layers", "report", "run", "serve",
}

// TestTop refuses what a trial left in the module's directory, once it is committed.
func TestTop(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Skip("names of committed files come from git, in a clone: ", err)
	}
	strays := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		strays[name] = path.Ext(name) != ".go" && !slices.Contains(atTheTop, name)
	}
	for _, name := range slices.Sorted(maps.Keys(strays)) {
		if strays[name] {
			t.Errorf("%s is committed in the module's directory; remove it, or name it in atTheTop", name)
		}
	}
}

// drawers are names that say nothing.
var drawers = []string{"util", "utils", "common", "base", "helper", "helpers", "types", "misc"}

// TestNames refuses files and packages without a subject.
func TestNames(t *testing.T) {
	for _, s := range readTree(t) {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), path.Ext(s.path)), "_test")
		if slices.Contains(drawers, name) || slices.Contains(drawers, path.Base(s.room())) {
			t.Errorf("%s: a name that says nothing; call it after what is in it, or move that to its only user", s.path)
		}
	}
}

// flagged packages are over the size at which a package asks to be two, for
// the reason that stands beside them.
var flagged = map[string]string{
	"circuit": "one file for each leaf family",
	"cluster": "coordinator and worker are the two halves of one protocol, and the transports' contracts are its words",
	"cmd/pce": "one file for each command",
	"engine":  "one file for each query, and the runners of both paths",
	"dataset": "one file for each step from a path to a batch; formats are sub-packages",
	"run":     "one file for each step of a run, from its structure to its result",

	"kernels/cpu/tensor": "one file for each pass over a program; they share its tasks and their memory",
	"kernels/emulator":   "one file for each kind of instruction and of check",
	"kernels/kerneltest": "one file for each part of the suite",
	"kernels/ptx/tensor": "one file for each kernel; they share tables and the forming of operands",
}

// TestPackageSizes flags packages that ask to be two.
func TestPackageSizes(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	for _, s := range readTree(t) {
		if !s.generated && !s.test {
			files[s.room()]++
			lines[s.room()] += s.lines
		}
	}
	for room := range files {
		over := files[room] > maxPackageFiles || lines[room] > maxPackageLines
		if _, known := flagged[room]; over && !known {
			t.Errorf("%s has %d files and %d lines, %d and %d are allowed; split it, or say in flagged why not",
				room, files[room], lines[room], maxPackageFiles, maxPackageLines)
		}
	}
}

// TestPackageDocs wants a doc with its headings in every package.
func TestPackageDocs(t *testing.T) {
	docs := map[string]string{}
	for _, s := range readTree(t) {
		if s.ast == nil || s.test || strings.HasPrefix(s.path, "internal/gen/") || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		docs[s.room()] += s.ast.Doc.Text()
	}
	for room, doc := range docs {
		headings := []string{"# Shapes and units", "# Errors", "# Source"}
		if strings.HasPrefix(room, "internal/") {
			headings = []string{"# Errors"}
		}
		for _, h := range headings {
			if !strings.Contains(doc, h+"\n") {
				t.Errorf("the doc of package %s lacks the heading %q", room, h)
			}
		}
	}
}

// TestExportedHaveDocs wants a comment on every exported symbol that starts
// with its name.
func TestExportedHaveDocs(t *testing.T) {
	for _, s := range readTree(t) {
		if s.ast == nil || s.test || s.generated {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) && !strings.HasPrefix(d.Doc.Text(), d.Name.Name) {
					t.Errorf("%s: %s needs a comment that starts with its name", s.path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					ts, ok := spec.(*ast.TypeSpec)
					if !ok || !ts.Name.IsExported() {
						continue
					}
					if text := ts.Doc.Text() + d.Doc.Text(); !strings.Contains(text, ts.Name.Name) {
						t.Errorf("%s: type %s needs a comment that names it", s.path, ts.Name.Name)
					}
				}
			}
		}
	}
}

// receiverExported reports whether readers of the docs see the function: a
// method of an unexported type, or of the error interface, needs no comment.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if d.Name.Name == "Error" || d.Name.Name == "Unwrap" {
		return false
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, ok := t.(*ast.Ident)
	return ok && name.IsExported()
}

// rules are words that may not stand in a file, and what to do instead.
var rules = []struct {
	word   *regexp.Regexp
	cure   string
	tests  bool // the rule holds for tests only
	except []string
	// bubbles says that the rule does not hold where time is virtual.
	bubbles bool
}{
	{regexp.MustCompile(`\bos\.Exit\(`), "return an error; only the main.go of a command ends the process", false, []string{"cmd/pce/main.go", "bench/card/main.go", "bench/gpu/main.go", "bench/query/main.go", "bench/reduction/main.go", "bench/scale/main.go", "bench/serve/main.go", "bench/spn/main.go"}, false},
	{regexp.MustCompile(`\bos\.(Getenv|LookupEnv|Environ)\(`), "take it as an option; cmd/pce reads the environment", false,
		[]string{"cmd/pce/main.go", "bench/gpu/main.go", "bench/reduction/main.go", "kernels/cpu/micro/select.go"}, false},
	{regexp.MustCompile(`\btime\.Sleep\(`), "use testing/synctest or a channel", true, nil, true},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`), "finish it", false, nil, false},
}

// TestCgo wants a build tag on every file with C, so that all else builds with Go
// alone.
func TestCgo(t *testing.T) {
	cgo := regexp.MustCompile(`(?m)^import "C"`)
	tagged := regexp.MustCompile(`^//go:build \w+ && cgo\n`)
	for _, s := range readTree(t) {
		if cgo.Match(s.text) && !tagged.Match(s.text) {
			t.Errorf("%s: cgo needs a build tag of its own; start with //go:build and the tag && cgo", s.path)
		}
	}
}

// TestWords holds files to the rules on words.
func TestWords(t *testing.T) {
	for _, s := range readTree(t) {
		if strings.HasPrefix(s.path, "internal/gen/") || s.path == "internal/layout/files_test.go" {
			continue
		}
		for _, r := range rules {
			if r.tests && !s.test || !r.tests && s.test || slices.Contains(r.except, s.path) {
				continue
			}
			if r.bubbles && strings.Contains(string(s.text), `"testing/synctest"`) {
				continue
			}
			if m := r.word.Find(s.text); m != nil {
				t.Errorf("%s: %s: %s", s.path, m, r.cure)
			}
		}
	}
}
