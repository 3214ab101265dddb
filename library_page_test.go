package pce_test

import (
	"os"
	"strings"
	"testing"
)

// TestLibraryPage wants every piece of Go in README.md and docs/library.md in
// example_test.go, line by line, where go test compiles and runs it.
func TestLibraryPage(t *testing.T) {
	read := func(name string) []string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
	var examples strings.Builder
	for _, line := range read("example_test.go") {
		examples.WriteString(strings.TrimLeft(line, "\t") + "\n")
	}
	pieces := 0
	for _, page := range []string{"README.md", "docs/library.md"} {
		var piece strings.Builder
		inside := false
		for i, line := range read(page) {
			switch {
			case line == "```go":
				inside = true
			case strings.HasPrefix(line, "```") && inside:
				if !strings.Contains(examples.String(), piece.String()) {
					t.Errorf("%s: the Go above line %d is not in example_test.go:\n%s", page, i+1, &piece)
				}
				pieces, inside = pieces+1, false
				piece.Reset()
			case inside:
				piece.WriteString(strings.TrimLeft(line, "\t") + "\n")
			}
		}
	}
	if pieces < 5 {
		t.Errorf("only %d pieces of Go; the pattern is broken", pieces)
	}
}
