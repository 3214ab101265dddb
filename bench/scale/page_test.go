package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageCommand matches the commands of the page.
var pageCommand = regexp.MustCompile("`go run ./bench/scale ([^`]*)`")

// cells returns the cells of a row of a table, nil of another line.
func cells(line string) []string {
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
	if !ok {
		return nil
	}
	row := strings.Split(strings.TrimSuffix(line, "|"), " | ")
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row
}

// TestPage holds docs/scaling.md to this program: every command that it prints is one, and the
// cells of the table below a command are what the command prints. So that it takes seconds,
// clusters of more than four workers, and all links but the slowest, are left out here; a cell
// depends on its own row and on that of the first number of workers alone.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(page), "\n")
	commands, compared := 0, 0
	most := 4 // workers; larger clusters take longer to simulate
	if testing.Short() {
		most = 2
	}
	var o *options // of the last command
	for i := 0; i < len(lines); i++ {
		for _, m := range pageCommand.FindAllStringSubmatch(lines[i], -1) {
			commands++
			if o, err = parse(strings.Fields(m[1])); err != nil {
				t.Fatalf("docs/scaling.md:%d: %s: %v", i+1, m[1], err)
			}
		}
		if !strings.HasPrefix(lines[i], "| model |") {
			continue
		}
		var table []string
		for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
			table = append(table, lines[i])
		}
		if o == nil {
			t.Fatalf("docs/scaling.md:%d: a table without a command above it", i)
		}
		if testing.Short() && compared >= 40 {
			continue
		}
		all := o.workers
		o.workers = slices.DeleteFunc(slices.Clone(o.workers), func(n int) bool { return n > most })
		o.links = o.links[:min(1, len(o.links))]
		var out bytes.Buffer
		if err := o.run(&out); err != nil {
			t.Fatal(err)
		}
		shown := map[string][]string{} // by model, transport and link
		for _, line := range table[2:] {
			if c := cells(line); len(c) >= 4+len(all) {
				shown[strings.Join(c[:4], " ")] = c[4:]
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
			c := cells(line)
			want := shown[strings.Join(c[:4], " ")]
			if want == nil {
				t.Errorf("docs/scaling.md:%d: the table lacks the row %v", i, c[:4])
				continue
			}
			for k, n := range o.workers {
				compared++
				if c[4+k] != want[k] {
					t.Errorf("docs/scaling.md:%d: %v, %d workers: the page says %s, the program %s", i, c[:4], n, want[k], c[4+k])
				}
			}
		}
	}
	least := 100
	if testing.Short() {
		least = 40
	}
	if commands < 8 || compared < least {
		t.Errorf("%d commands, %d cells compared; the pattern is broken", commands, compared)
	}
}
