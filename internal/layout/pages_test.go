package layout

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns README.md, CONTRIBUTING.md and the pages of docs, by their names.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range append(names, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))] = string(text)
	}
	return all
}

// TestLinks wants every link of a page to a file of the repository to lead to one.
func TestLinks(t *testing.T) {
	links := 0
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			links++
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), m[1])); err != nil {
				t.Errorf("%s links %s: %v", name, m[1], err)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links; the pattern is broken", links)
	}
}

// TestEvidence wants the commands of docs/status.md to run something: packages and scripts
// that exist, targets of the Makefile, and patterns that match a test in these packages.
func TestEvidence(t *testing.T) {
	tests := map[string][]string{} // of a room
	for _, s := range readTree(t) {
		if !s.test || s.ast == nil {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[s.room()] = append(tests[s.room()], f.Name.Name)
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	var cells []string // the last ones of all rows: commands
	for line := range strings.Lines(pages(t)["docs/status.md"]) {
		if row, ok := strings.CutSuffix(strings.TrimSpace(line), " |"); ok {
			cells = append(cells, row[strings.LastIndex(row, " | ")+1:])
		}
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Join(cells, "\n"), -1) {
		words := strings.Fields(strings.ReplaceAll(m[1], `\|`, "|"))
		var err error
		switch {
		case words[0] == "make":
			for _, target := range words[1:] {
				if !strings.Contains(string(makefile), "\n"+target+":") {
					err = fmt.Errorf("no target %s", target)
				}
			}
		case words[0] == "go" && words[1] == "test":
			err = matches(words[2:], tests)
		case words[0] == "go":
			_, err = os.Stat(filepath.Join(root, words[2]))
		default:
			_, err = os.Stat(filepath.Join(root, words[0]))
		}
		if commands++; err != nil {
			t.Errorf("docs/status.md: %s: %v", strings.Join(words, " "), err)
		}
	}
	if commands < 25 {
		t.Errorf("only %d commands; the pattern is broken", commands)
	}
}

// TestScriptsRefuse wants scripts with options to refuse one that they do not know: what is
// mistyped would run for minutes and answer another question.
func TestScriptsRefuse(t *testing.T) {
	for _, name := range []string{"conformance", "ptx", "ptx-code", "ptxas"} {
		out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(root, ".ci", name), "-mistyped").CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "usage: .ci/"+name+" [") {
			t.Errorf(".ci/%s -mistyped: %v, printed %q; want exit code 2 and its usage", name, err, out)
		}
	}
}

// matches says why a go test with these arguments runs nothing, if so. The pattern of -run
// must match a test in each package, and all packages must have tests.
func matches(args []string, tests map[string][]string) error {
	pattern := regexp.MustCompile("")
	for i, a := range args {
		if a == "-run" && i+1 < len(args) {
			pattern = regexp.MustCompile(strings.Trim(args[i+1], "'"))
		}
	}
	for _, a := range args {
		if !strings.HasPrefix(a, ".") {
			continue
		}
		below, all := strings.CutSuffix(a, "/...")
		room, found := path.Clean(below), false
		for r, names := range tests {
			for _, name := range names {
				found = found || (r == room || all && strings.HasPrefix(r, room+"/")) && pattern.MatchString(name)
			}
		}
		if !found {
			return fmt.Errorf("%s has no such test", a)
		}
	}
	return nil
}
