package kerneltest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the module.
const root = "../.."

// standIn takes the place of the go command: it lists packages as that does, and in
// place of a test it prints the choice and ends with the code in the file verdict.
const standIn = `#!/bin/sh
if [ "$1" = test ]; then
  echo "plays $PCE_CONFORMANCE"
  exit "$(cat verdict)"
fi
exec go "$@"
`

// TestConformanceStep changes a copy of the module in ways that matter to the
// conformance suite and in ways that do not, and looks at what CI's step does.
func TestConformanceStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("copies the module and lists its packages a dozen times; run without -short")
	}
	for _, tool := range []string{"bash", "go", "sha256sum", "diff"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: CI's step needs %s, which is not on the PATH", tool)
		}
	}
	dir := t.TempDir()
	copySources(t, dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("stand-in", standIn)
	step := func(verdict string, args ...string) (out string, ok bool) {
		t.Helper()
		write("verdict", verdict)
		cmd := exec.Command("bash", append([]string{".ci/conformance"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO="+filepath.Join(dir, "stand-in"), "GOFLAGS=-buildvcs=false")
		text, err := cmd.CombinedOutput()
		if _, ended := err.(*exec.ExitError); err != nil && !ended {
			t.Fatal(err)
		}
		return string(text), err == nil
	}
	// want runs the step of CI and wants it to play the whole suite or a tenth.
	want := func(what string, whole bool) {
		t.Helper()
		out, ok := step("0")
		if plays := strings.Contains(out, "\nplays whole\n"); !ok || plays != whole || !whole && !strings.Contains(out, "\nplays ") {
			t.Errorf("%s: passes: %v, and prints\n%s\nwant the whole suite: %v", what, ok, out, whole)
		}
	}
	const record = "kernels/kerneltest/testdata/passed.txt"
	if err := os.RemoveAll(filepath.Join(dir, record)); err != nil {
		t.Fatal(err)
	}
	want("nothing recorded", true)
	if out, ok := step("1"); ok {
		t.Errorf("a suite that fails lets the step pass:\n%s", out)
	}
	if out, ok := step("1", "-record"); ok {
		t.Errorf("a suite that fails is recorded:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, record)); err == nil {
		t.Error("a suite that fails leaves a record")
	}
	if out, ok := step("0", "-record"); !ok {
		t.Fatalf("a suite that passes is not recorded:\n%s", out)
	}
	want("recorded", false)
	if out, ok := step("1"); ok {
		t.Errorf("a tenth that fails lets the step pass:\n%s", out)
	}

	name, text, changed := kernelConstant(t, dir)
	write(name, changed)
	want("a constant of a kernel is another", true)
	if out, _ := step("0", "-plan"); !strings.HasSuffix(strings.TrimSpace(out), " kernels/ptx/tensor") || strings.Contains(out, "plays") {
		t.Errorf("the plan is\n%s\nwant one that names the package, and no more", out)
	}
	write(name, "// Nothing of this computes.\n\n"+text)
	want("a comment is another", false)
	write(name, text)
	write("kernels/ptx/tensor/more.go", "package tensor\n\nfunc more() int { return 1 }\n")
	want("there is another file", true)
	write("kernels/ptx/tensor/more.go", "package tensor\n")
	write("kernels/ptx/tensor/more_test.go", "package tensor\n\nfunc more() int { return 1 }\n")
	if err := os.Remove(filepath.Join(dir, "kernels/ptx/tensor/more.go")); err != nil {
		t.Fatal(err)
	}
	want("there is another test", false)
}

// copySources copies what the go command lists packages by.
func copySources(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch ext := filepath.Ext(name); {
		case d.IsDir():
			if name == ".git" || name == "bin" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		case ext != ".go" && ext != ".s" && ext != ".c" && ext != ".h" && ext != ".mod" && ext != ".sum" && filepath.Dir(name) != ".ci":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kernelConstant finds a file of kernels with a constant that is a power of two, and
// returns it as it is and with another power.
func kernelConstant(t *testing.T, dir string) (name, text, changed string) {
	t.Helper()
	power := regexp.MustCompile(`0x1p-\d+\b`)
	files, err := filepath.Glob(filepath.Join(dir, "kernels/ptx/tensor/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at, line := range strings.SplitAfter(string(b), "\n") {
			if !strings.HasSuffix(path, "_test.go") && power.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), "//") {
				lines := strings.SplitAfter(string(b), "\n")
				lines[at] = power.ReplaceAllString(line, "0x1p-3")
				name, err := filepath.Rel(dir, path)
				if err != nil {
					t.Fatal(err)
				}
				return name, string(b), strings.Join(lines, "")
			}
		}
	}
	t.Fatal("no kernel has a constant that is a power of two; let the test change another one")
	return "", "", ""
}
