package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kernelsIn compiles with more arguments, and returns the kernels that are written by their names.
func kernelsIn(t *testing.T, args ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	code, out, stderr := do(t, "", append([]string{"compile", "-o", dir}, args...)...)
	if code != exitOK {
		t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	kernels := map[string]string{}
	for path := range strings.Lines(out) {
		text, err := os.ReadFile(strings.TrimSpace(path))
		if err != nil {
			t.Fatal(err)
		}
		kernels[strings.TrimSuffix(filepath.Base(strings.TrimSpace(path)), ".ptx")] = string(text)
	}
	return kernels
}

// TestCompileQueries wants the kernels of a model to be those of all of its queries.
func TestCompileQueries(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.txt")
	text := "circuit 2\na = input x0 categorical categories=3 0.2 0.3 0.5\nb = input x1 gaussian min_sigma=0.01 0 1\np = product a b\ns = sum p : 1\n"
	if err := os.WriteFile(model, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kernels := kernelsIn(t, model)
	for _, want := range []string{"forward", "sample", "posterior", "posterior_units", "table_modes", "forward_largest", "leaf_filled", "sample_largest", "mode_codes"} {
		if kernels[want] == "" {
			t.Errorf("no kernel %s among %d", want, len(kernels))
		}
	}
	if kernels["update"] != "" {
		t.Error("a kernel of training among those of queries")
	}
}

// TestCompileDiscriminative wants the kernels of discriminative training, which computes in float32 whatever the precision says.
func TestCompileDiscriminative(t *testing.T) {
	args := []string{"--config", "preset:hclt", "--set", "model.structure=rat-spn", "--set", "data.train=builtin:random?rows=100&vars=5&categories=2", "--set", "data.image=[]", "--set", "data.valid=",
		"--set", "data.test=", "--set", "model.latents=16", "--set", "model.class=1", "--set", "train.discriminative=0.5"}
	mixed, whole := kernelsIn(t, append(args, "--set", "precision=mixed")...), kernelsIn(t, append(args, "--set", "precision=fp32")...)
	if len(mixed) != len(whole) || len(whole) == 0 {
		t.Fatalf("%d kernels with precision mixed, %d with fp32", len(mixed), len(whole))
	}
	for name, text := range whole {
		if mixed[name] != text {
			t.Errorf("kernel %s is another one with precision mixed", name)
		}
	}
}

// fiveFloors is a network whose least likelihood, that of numbers outside of all bins, is too little for float32.
func fiveFloors() string {
	text := "Root ProductNode(A, B, C, D, E){\n"
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		text += "\t" + name + " Histogram(" + strings.ToLower(name) + "|[0., 1.];[1.0])\n"
	}
	return text + "\t}\n# a;b;c;d;e\n"
}

// TestCompileExact wants the texts of code to have the programs for rows that are computed twice, as the files have.
func TestCompileExact(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.spn")
	if err := os.WriteFile(model, []byte(fiveFloors()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{model, "--type", "f32"}
	if kernels := kernelsIn(t, args...); len(kernels) != 2 || kernels["rows"] == "" || kernels["exact_rows"] == "" {
		t.Fatalf("kernels %v; want rows and exact_rows", kernels)
	}
	args = append([]string{"compile"}, args...)
	code, out, stderr := do(t, "", append(args, "--emit", "ptx")...)
	if code != exitOK {
		t.Fatal(stderr)
	}
	_, names := kernelNames(t, out)
	if want := []string{"rows", "exact_rows"}; !slices.Equal(names, want) {
		t.Errorf("--emit ptx has the kernels %v, want %v", names, want)
	}
	code, out, stderr = do(t, "", append(args, "--emit", "simt")...)
	if code != exitOK {
		t.Fatal(stderr)
	}
	for _, output := range []string{"output ll f32 ", "output ll f64 "} {
		if strings.Count(out, output) != 1 {
			t.Errorf("--emit simt has %q %d times, want a module for each type:\n%s", output, strings.Count(out, output), out)
		}
	}
}
