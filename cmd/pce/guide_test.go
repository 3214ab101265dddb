package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// guide lists README.md and the pages of the guide, in the order in which they are read.
// Pages that stand alone, such as docs/queries.md, have tests of their own.
var guide = []string{"README.md", "docs/data.md", "docs/structures.md", "docs/training.md", "docs/compression.md", "docs/cluster.md", "docs/model-file.md",
	"docs/forests.md", "docs/spn.md", "docs/hardware.md", "docs/reductions.md"}

// quick are the pages whose commands take no longer than a test may. They are played as they are, so
// the numbers that they show must come too.
var quick = []string{"docs/forests.md", "docs/spn.md", "docs/hardware.md", "docs/reductions.md"}

// shorter are the settings, by their environment variables, with which the commands of the
// other pages take seconds: that is all that differs from what a reader runs.
var shorter = []string{"PCE_TRAIN__EPOCHS=1", "PCE_TRAIN__STEPS=3", "PCE_MODEL__LATENTS=4", "PCE_DATA__VALID="}

// block is a fenced block of a page.
type block struct {
	lang, text string
	line       int // of the fence, from 1
}

// blocksOf returns the fenced blocks of a page.
func blocksOf(page string) []block {
	var all []block
	open := false
	for i, line := range strings.Split(page, "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			all, open = append(all, block{lang: lang, line: i + 1}), true
		case fence:
			open = false
		case open:
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}

// TestReadme wants README.md to be a screen and a tour: at most 120 lines of 120 columns.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > 120 {
		t.Errorf("README.md has %d lines, want at most 120; move what a newcomer does not need to docs", len(lines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("README.md:%d has %d columns, want at most 120", i+1, n)
		}
	}
}

// TestGuide runs every command of README.md and of the guide in the order printed, from an
// empty folder, and wants each to succeed. The words of a block of output ("text") must come
// in the output of the block of commands above it, line by line in this order; numbers may be
// others where settings are shortened.
func TestGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: training runs, a server and a cluster; without -short")
	}
	for _, tool := range []string{"bash", "awk", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range guide {
		t.Run(filepath.Base(name), func(t *testing.T) {
			page := readFile(t, root, name)
			programs := map[string]string{"pce": roleVariable + "=pce exec '" + os.Args[0] + "'"}
			// A reader of README has a clone, in which go run builds this program.
			programs["go"] = `[ "$1 $2" = "run ./cmd/pce" ] || { echo "go $*: not played"; exit 1; }; shift 2; exec pce`
			if bytes.Contains(page, []byte("python3 ")) {
				programs["python3"] = "exec " + numpyPython(t)
			}
			playPage(t, name, string(page), programs)
			for _, m := range regexp.MustCompile("`(runs/[^` ]+)`").FindAllStringSubmatch(string(page), -1) {
				if _, err := os.Stat(m[1]); err != nil {
					t.Errorf("%s names %v", name, err)
				}
			}
		})
	}
}

// playPage runs the commands of a page in one shell, as a reader does who pastes block after
// block, and compares their output with what the page shows. programs says what the shell
// finds under a name.
func playPage(t *testing.T, name, page string, programs map[string]string) {
	t.Helper()
	addr, bin := freeAddr(t), t.TempDir()
	for program, line := range programs {
		// Tests share a machine, so the server gets a port that is free.
		text := "#!/bin/sh\n[ \"$1\" != serve ] || set -- \"$@\" --addr " + addr + "\n" + line + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What is printed between two marks belongs to one block.
	const mark = "=== block %d ===\n"
	script := "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
	blocks := blocksOf(page)
	commands := 0
	for i, b := range blocks {
		if b.lang == "sh" {
			script += fmt.Sprintf("printf '"+strings.ReplaceAll(mark, "\n", `\n`)+"'\n", i) + strings.ReplaceAll(b.text, "localhost:8080", addr)
			commands++
		}
	}
	if commands == 0 {
		t.Fatalf("%s has no commands; the pattern is broken", name)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if !slices.Contains(quick, name) {
		cmd.Env = append(cmd.Env, shorter...)
	}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	last, printed := -1, map[int]string{}
	for line := range strings.Lines(out.String()) {
		if n, _ := fmt.Sscanf(line, mark, &last); n == 0 {
			printed[last] += line
		}
	}
	if err != nil {
		t.Fatalf("%s, line %d: %v\n%s\n%s", name, blocks[max(last, 0)].line, err, blocks[max(last, 0)].text, printed[last])
	}
	for i, b := range blocks {
		if b.lang != "text" {
			continue
		}
		if i == 0 || blocks[i-1].lang != "sh" {
			t.Fatalf("%s, line %d: output without commands above it", name, b.line)
		}
		if missing := claimed(b.text, printed[i-1], slices.Contains(quick, name)); missing != "" {
			t.Errorf("%s, line %d: no %q (in this order) in\n%s", name, b.line, missing, printed[i-1])
		}
	}
}

// numberWord matches words that may differ from one run to another.
var numberWord = regexp.MustCompile(`^[-+]?[0-9][0-9.,e+-]*[kMG]?$`)

// claimed returns the first word of what a page shows that the output lacks after the words
// before it, "" if it has all. Numbers are looked for if they are part of the claim.
func claimed(shown, output string, numbers bool) string {
	for _, word := range strings.FieldsFunc(shown, func(r rune) bool { return strings.ContainsRune(" \n,", r) }) {
		if !numbers && numberWord.MatchString(word) {
			continue
		}
		_, after, ok := strings.Cut(output, word)
		if !ok {
			return word
		}
		output = after
	}
	return ""
}

// freeAddr returns an address of this machine at which nothing listens yet.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
