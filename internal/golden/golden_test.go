package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// echo answers with what it was asked.
func echo(cmd string, args []string, input string) string {
	switch cmd {
	case "echo":
		return input
	case "silent":
		return ""
	case "blank":
		return "a\n\nb\n"
	}
	return fmt.Sprintf("%s %q %q", cmd, args, input)
}

func TestDialogue(t *testing.T) { Run(t, "testdata/dialogue.txt", echo) }

// TestDifference: every case that is answered otherwise is named with its line.
func TestDifference(t *testing.T) {
	asked := 0
	wrong := func(cmd string, args []string, input string) string {
		asked++
		return echo(cmd, args, input) + "!"
	}
	faults, err := run("testdata/dialogue.txt", false, wrong)
	if err != nil {
		t.Fatal(err)
	}
	if asked != 5 || len(faults) != asked {
		t.Fatalf("%d cases, %d faults, want 5 of each", asked, len(faults))
	}
	if want := "testdata/dialogue.txt:18: show a  b=1\n"; !strings.HasPrefix(faults[1], want) {
		t.Errorf("second fault is %q, want it to start with %q", faults[1], want)
	}
	ambiguous := func(string, []string, string) string { return "----\n----\n\nx" }
	if _, err := run("testdata/dialogue.txt", false, ambiguous); err == nil {
		t.Error("an output that looks like the end of one was accepted")
	}
	if _, err := run("testdata/none.txt", false, echo); err == nil {
		t.Error("a missing file was accepted")
	}
}

// TestRewrite: a file of empty answers becomes the golden one, comments and all.
func TestRewrite(t *testing.T) {
	want, err := os.ReadFile("testdata/dialogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks, after, err := parse(string(want))
	if err != nil {
		t.Fatal(err)
	}
	for i := range blocks {
		blocks[i].output = ""
	}
	path := filepath.Join(t.TempDir(), "dialogue.txt")
	if err := os.WriteFile(path, []byte(format(blocks, after)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(path, true, echo); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("rewritten:\n%s\nwant:\n%s", got, want)
	}
}

func TestDamagedFiles(t *testing.T) {
	for _, text := range []string{"cmd", "cmd\ninput\n", "----\nout\n", "cmd\n----\n----\nnever ends\n----\n"} {
		if blocks, _, err := parse(text); err == nil {
			t.Errorf("%q was read as %v, want an error", text, blocks)
		}
	}
}

// FuzzFormat: what format writes, parse reads.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"", "a", "a\n\nb", "\n", "----", "----\n----", "a\n----\n----"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		if strings.Contains("\n"+output+"\n", "\n----\n----\n\n") {
			t.Skip("the one output that the form cannot show")
		}
		in := []block{{line: 1, command: "cmd", input: []string{"x", "", "y"}, output: output}, {command: "next"}}
		in[1].before = []string{""}
		out, _, err := parse(format(in, nil))
		if err != nil || len(out) != 2 || out[0].output != output || out[1].command != "next" {
			t.Errorf("output %q became %+v, %v", output, out, err)
		}
	})
}
