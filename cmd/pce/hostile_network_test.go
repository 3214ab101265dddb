package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestHostileNetworks gives commands damaged files of networks: each wants one line that names the file and
// what is wrong, exit 3, and memory in proportion to the file.
func TestHostileNetworks(t *testing.T) {
	dir := t.TempDir()
	const good = "S SumNode(0.25*A, 0.75*B){\nA Categorical(x|p=[0.5, 0.5])\nB Categorical(x|p=[0.1, 0.9])\n}\n# x\n"
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("good.spn"), []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := converse([]string{"convert", in("good.spn"), in("good.bin")}, nil, ""); strings.Contains(out, "exit") {
		t.Fatal(out)
	}
	bin, err := os.ReadFile(in("good.bin"))
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	levels := 1_000_000
	if testing.Short() {
		levels /= 20 // past every limit as well
	}
	for i := range levels {
		fmt.Fprintf(&names, "N%d SumNode(1*N%d){", i, i+1)
	}
	const unknown, nested = "no known model", "nested more than"
	edit := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, file := range map[string]struct{ text, want string }{
		"cycle.spn":    {"S SumNode(1*P){\nP ProductNode(Q){\nQ SumNode(1*P){}\n}\n}\n", "descendant of itself"},
		"itself.spn":   {"S SumNode(1*S){\n}\n", "descendant of itself"},
		"child.spn":    {edit("0.75*B", "0.75*C"), `no node "C"`},
		"weights.spn":  {edit("0.75*B", "0.5*B"), "sum to 0.75"},
		"leaf.spn":     {edit("[0.5, 0.5]", "[0.5, 0.25]"), "sum to 0.75"},
		"nan.spn":      {edit("0.75*B", "nan*B"), "where a number"},
		"nanleaf.spn":  {edit("[0.5, 0.5]", "[nan, 0.5]"), "where a number"},
		"half.spn":     {good[:len(good)/2], "the end of the text"},
		"names.spn":    {names.String(), nested},
		"sums.spn":     {strings.Repeat("(1*(", levels/2) + "Bernoulli(V0|p=0.5)", nested},
		"deep.json":    {strings.Repeat(`{"Sum":{"weights":[1],"children":[`, levels), nested},
		"deep.jpc":     {"jpc 1\n" + strings.Repeat("(", levels), "line 2"},
		"far.bin":      {word(bin, 1, 2|7<<32), "pointer"},      // to a segment that is not in the file
		"circular.bin": {word(bin, 1, 2), "pointer"},            // to itself
		"beyond.bin":   {word(bin, 1, 2|0xfffff<<3), "pointer"}, // past the end of its segment
		"huge.bin":     {word(bin, 0, 0x7fffffff<<32), "cut short"},
		"segments.bin": {word(bin, 0, 0xffffffff|1<<32), unknown},
		"cut0.bin":     {"", unknown},
		"cut8.bin":     {string(bin[:8]), unknown},
		"cut24.bin":    {string(bin[:24]), "cut short"},
		"cut.bin":      {string(bin[:len(bin)-1]), "cut short"},
	} {
		if err := os.WriteFile(in(name), []byte(file.text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"info", in(name)}, {"compile", in(name), "--emit", "simt"}} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out := converse(args, nil, "")
			runtime.ReadMemStats(&after)
			line, code, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
			if !strings.HasPrefix(line, "! ") || code != "exit 3" || len(line) > 700 || !strings.Contains(line, name) || !strings.Contains(line, file.want) {
				t.Errorf("%s %s: %.700q, want one line with the file's name and %q, and exit 3", args[0], name, out, file.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20+8*uint64(len(file.text)) {
				t.Errorf("%s %s: %d bytes of memory for a file of %d", args[0], name, n, len(file.text))
			}
		}
	}
	if out := converse([]string{"compile", in("good.bin"), "--emit", "simt"}, nil, ""); !strings.HasPrefix(out, "module ") {
		t.Errorf("the file without damage: %s", out)
	}
}

// word returns a file whose 64-bit word at an index is w.
func word(file []byte, index int, w uint64) string {
	b := append([]byte(nil), file...)
	binary.LittleEndian.PutUint64(b[8*index:], w)
	return string(b)
}
