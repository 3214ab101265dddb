package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGenerators holds internal/gen/generators.txt, which says what CI compares, to
// the generators that there are, to the go:generate lines that run them, and to the
// files that they have written.
func TestGenerators(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "internal", "gen", "generators.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{} // generator to package
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); len(words) {
		case 0:
		case 2:
			listed[words[0]] = words[1]
		default:
			t.Errorf("generators.txt has the line %q, want a generator and a package", line)
		}
	}
	run := regexp.MustCompile(`(?m)^//go:generate go -C \S+ run \./(\w+) (?:\.\./)+(\S+)$`)
	mainPackage := regexp.MustCompile(`(?m)^package main$`)
	folders, ran, written := map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, s := range readTree(t) {
		if rel, ok := strings.CutPrefix(s.path, "internal/gen/"); ok && mainPackage.Match(s.text) {
			folders[path.Dir(rel)] = true
		}
		if s.generated {
			written[s.room()] = true
		}
		for _, m := range run.FindAllStringSubmatch(string(s.text), -1) {
			ran[m[1]] = m[2]
			if m[2] != s.room() {
				t.Errorf("%s runs the generator of %s", s.path, m[2])
			}
		}
	}
	for g, room := range listed {
		if !folders[g] || ran[g] != room || !written[room] {
			t.Errorf("generators.txt has %s for %s; want a folder internal/gen/%s, a go:generate line that runs it, and generated files", g, room, g)
		}
		delete(folders, g)
		delete(ran, g)
		delete(written, room)
	}
	if len(folders) > 0 || len(ran) > 0 || len(written) > 0 {
		t.Errorf("generators.txt lacks the generators %v, run by %v, or the packages with generated files %v", folders, ran, written)
	}
}
