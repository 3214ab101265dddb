package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// languages matches what a script does in other ways in other languages: it sorts, and reads or prints numbers
// with a point or times.
var languages = regexp.MustCompile(`\b(sort|awk|lscpu|EPOCHREALTIME|TIMEFORMAT)\b|printf .*%[.0-9]*[efg]`)

// TestScriptsLanguage wants scripts to do the same whatever the language of the machine is: in German the
// clock of bash has a comma, and in English "forward" sorts behind "forward_wide".
func TestScriptsLanguage(t *testing.T) {
	found := 0
	for _, pattern := range []string{".ci/*", "bench/*.sh"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var code []string
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(strings.TrimSpace(line), "#") {
					code = append(code, line)
				}
			}
			all := strings.Join(code, "")
			if what := languages.FindString(all); what != "" {
				found++
				if !strings.Contains(all, "\nexport LC_ALL=C ") {
					t.Errorf("%s has %q; let it begin with export LC_ALL=C", file, what)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d scripts; the pattern is broken", found)
	}
}
