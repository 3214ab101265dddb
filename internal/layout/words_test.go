package layout

import (
	"bytes"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plainWords are the paths whose words are plain already: packages, folders of pages and
// single files, relative to the module. The list grows with what is edited. Tests and
// generated files are left out.
var plainWords = []string{
	".", "bench/card", "bench/gpu", "bench/query", "bench/scale", "bench/serve", "run", "circuit", "circuit/format", "circuit/format/formattest", "circuit/format/native", "circuit/format/spflow",
	"circuit/format/text", "circuit/reference", "circuit/structures", "circuit/structures/equations", "circuit/structures/learnspn", "cluster", "cluster/assign", "cluster/blocks", "cluster/bustest", "cluster/chaos", "cluster/job",
	"cluster/natsbus", "cluster/peer", "cluster/peer/wire", "cluster/peertest", "cluster/query", "cluster/scale", "cluster/simnet", "cluster/uploads",
	"codec", "codec/lanes", "configs", "cmd/pce", "compile/reduction", "compile/spn", "dataset", "dataset/datasettest", "dataset/digits", "dataset/fields", "dataset/ndarray",
	"dataset/parquet", "em", "engine/lanes", "forest", "forest/format", "forest/format/formattest", "forest/format/lightgbm", "forest/format/onnx",
	"forest/format/treelite", "forest/format/xgboost", "examples/query", "examples/structure", "examples/train", "internal/atomicfile", "internal/golden",
	"internal/invariants", "internal/periodic", "internal/safetensors", "kernels", "kernels/cpu", "kernels/cpu/micro", "kernels/cuda", "kernels/cuda/driver",
	"kernels/cuda/tensor", "kernels/emulator/lanes", "kernels/simt/simttest", "kernels/tensor", "report", "report/curves",
	"report/tensorboard", "serve", "serve/cells", "serve/metrics", "serve/oip", "serve/page", "docs", "README.md", "CONTRIBUTING.md", "RATIONALE.md", "deploy/README.md",
}

// tic is a turn of phrase that reviewers strike.
type tic struct {
	// parts lists texts in small letters, one of which is in all that the pattern finds: a
	// line without them needs no search, which takes ten times as long.
	parts   []string
	pattern *regexp.Regexp
	better  string
	// except lists what the pattern also finds and may stay.
	except *regexp.Regexp
}

var tics = []tic{
	{[]string{" no "}, regexp.MustCompile(`(?:\w+ )?\b(?:is|are|was|were) no \w+`), "say 'is not a X'", regexp.MustCompile(`^[Tt]here |(longer|more|less|larger|smaller|better|worse|older)$`)},
	{[]string{"stand", "stood"}, regexp.MustCompile(`\b(?:stands?|stood|standing) (?:above|at|before|behind|below|beside|for|in|there|twice|under)\b`), "say is, means, or what it does", nil},
	{[]string{"body", "whoever"}, regexp.MustCompile(`(?i)\b(?:nobody|somebody|whoever)\b`), "name the user, the caller, the worker", nil},
	{[]string{"one a"}, regexp.MustCompile(`\bone an? (?:row|core|launch|step|thread|variable|column|epoch|worker|node)\b`), "say 'one per row'", nil},
	{[]string{"one "}, regexp.MustCompile(`\bone (?:array|bin|cell|command|count|entry|file|launch|line|lookup|message|number|product|statement|task|value) an? \w+`), "say 'one line per epoch'", nil},
	{[]string{" a ", " an "}, regexp.MustCompile(`\b(?:rows|nats|bits|bytes|cells|tokens|seconds|steps|graphs|shards|samples|edges|flows|times|instructions|MB|MiB|ms|µs|ns) an? (?:launch|step|second|row|shard|worker|thread|core|epoch|column|byte|node|process|pass)\b`), "say 'rows per launch'", nil},
	{[]string{"go on", "goes on", "going on", "went on"}, regexp.MustCompile(`\b(?:go|goes|going|went) on\b`), "say continues", nil},
	{[]string{"besides"}, regexp.MustCompile(`(?i)\bbesides\b`), "say also, in addition to, other than", nil},
	{[]string{"so "}, regexp.MustCompile(`(?i)\bso (?:many|much|few|long)\b`), "say 'that many', or give the number its name", regexp.MustCompile(`^$`)},
	// Bury is a method of the queue's interface.
	{[]string{"slab", "bur", "untold"}, regexp.MustCompile(`(?i)\b(?:slab|slabs|bury|buried|untold)\b`), "take the field's word: shared memory tile, dead letter, unreported", regexp.MustCompile(`^Bury$`)},
}

// found returns the tics of a line, each with its better words.
func found(line string) (all []string) {
	small := strings.ToLower(line)
	for _, t := range tics {
		if !slices.ContainsFunc(t.parts, func(part string) bool { return strings.Contains(small, part) }) {
			continue
		}
		for _, hit := range t.pattern.FindAllString(line, -1) {
			if t.except == nil || !t.except.MatchString(hit) {
				all = append(all, "'"+hit+"': "+t.better)
			}
		}
	}
	return all
}

// TestPlainWords holds comments, texts and pages to plain words.
func TestPlainWords(t *testing.T) {
	files := 0
	for _, p := range plainWords {
		for _, name := range wordFiles(t, p) {
			files++
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				for _, hit := range found(line) {
					t.Errorf("%s:%d: %s", name, i+1, hit)
				}
			}
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read; the walk is broken", files)
	}
}

// wordFiles returns the hand-written Go files and pages of a path: of a folder without those
// below it.
func wordFiles(t *testing.T, p string) (names []string) {
	t.Helper()
	info, err := os.Stat(filepath.Join(root, p))
	if err != nil {
		t.Fatalf("plainWords names %s: %v; say where it is now", p, err)
	}
	if !info.IsDir() {
		return []string{p}
	}
	entries, err := fs.ReadDir(os.DirFS(filepath.Join(root, p)), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(p, e.Name())
		page := path.Ext(name) == ".md" && p == "docs"
		code := path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(e.Name(), "z")
		if !e.IsDir() && (page || code) {
			names = append(names, name)
		}
	}
	return names
}

// TestTics finds what each pattern is for, and leaves plain English alone.
func TestTics(t *testing.T) {
	for line, want := range map[string]int{
		"7 is no code": 1, "there is no driver": 0, "it is no longer there": 0, "rows that are no rows": 1,
		"what stands in a node": 1, "it stands for a row": 1, "nobody reads it": 1, "Whoever asks": 1,
		"threads; 0: one a core": 1, "512 rows a launch": 1, "nats a row": 1, "a column's rows of a row": 0,
		"the run goes on": 1, "it depends on going on": 1, "and besides": 1, "of so many rows": 1, "also so that many": 0,
		"a row of a table": 0, "one row at a time": 0, "a slab of memory": 1, "one line an epoch": 1, "one of an epoch": 0, "cells a second": 1,
	} {
		if got := found(line); len(got) != want {
			t.Errorf("%q: %v, want %d", line, got, want)
		}
	}
}

// TestCommentRatio prints how many lines of comments the packages have per line of code, and
// how many functions of over 20 lines have a comment of less than ten words: for readers, no
// test.
func TestCommentRatio(t *testing.T) {
	const long, words = 20, 10
	for _, p := range plainWords {
		code, comments, functions, bare := 0, 0, 0, 0
		for _, s := range readTree(t) {
			if s.room() != p || s.test || s.generated || s.ast == nil {
				continue
			}
			for _, line := range strings.Split(string(s.text), "\n") {
				switch line = strings.TrimSpace(line); {
				case strings.HasPrefix(line, "//"):
					comments++
				case line != "":
					code++
				}
			}
			for _, d := range s.ast.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil || bytes.Count(s.text[f.Pos()-s.ast.FileStart:f.End()-s.ast.FileStart], []byte("\n")) < long {
					continue
				}
				functions++
				if len(strings.Fields(f.Doc.Text())) < words {
					bare++
				}
			}
		}
		if code > 0 {
			t.Logf("%-20s %.2f lines of comments per line of code; %d functions of over %d lines, %d with less than %d words",
				p, float64(comments)/float64(code), functions, long, bare, words)
		}
	}
}
