package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
)

// TestDiffers: infinite terms explain a difference of floats from NaN or infinity, and no other.
func TestDiffers(t *testing.T) {
	floats, ints := &reduction.Tensor{Floats: []float64{1}}, &reduction.Tensor{Ints: []int64{1}}
	for _, tc := range []struct {
		by     float64
		output *reduction.Tensor
		want   string
	}{
		{math.Inf(1), floats, "where a number is infinite or NaN"},
		{0.5, floats, "by 0.5, relative"},
		{math.Inf(1), ints, "by +Inf, relative"},
	} {
		if err := differs("S", tc.by, tc.output); !strings.Contains(err.Error(), tc.want) || exitCode(err) != exitData {
			t.Errorf("%v: %v, want %s", tc.by, err, tc.want)
		}
	}
}

// TestReduceRounding checks sums over windows of decimal fractions, from which terms are subtracted again, where some are 0: what rounding
// leaves there is small beside the other elements.
func TestReduceRounding(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"p.red": `param N, W : N >= W, W >= 1; size N = 1000, W = 100;
input float x[N]; array float s[N]; output s;
s[i] += x[j] : { [i,j] : 0 <= i < N-W, i <= j < i+W };
`, "x.txt": "0.1 0.2 0.3 0.7 0.1 0 0 0 0 0 0 0\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := do(t, "", "reduce", "run", "p.red", "-p", "N=12,W=3", "--data", ".", "--check")
	if code != exitOK || !strings.Contains(out, "check           equal but for") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
}

// TestPlaces: a line is one of the file where the error begins with it, and else one of the program that the error names.
func TestPlaces(t *testing.T) {
	_, err := reduction.Parse("output y;\noutput y;")
	if got, want := inProgram("a.red", err).Error(), "a.red:2:8: y is an output twice"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	err = fmt.Errorf("the simplified program: %w", err)
	if got, want := inProgram("a.red", err).Error(), "a.red: the simplified program: 2:8: y is an output twice"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReduceSizes gives sizes on the command line: programs that are printed have them as their own, and are simplified for them,
// also where the source has none.
func TestReduceSizes(t *testing.T) {
	const source = `param N, K : N >= 1, K >= 1;
%sinput float x[N];
input int z[N] in [0,K), q[N] in [0,K);
array float s[N];
output s;
s[k] += x[i] : { [k,i] : 0 <= k < N, 0 <= i < k } if z[i] == q[k];
`
	dir := t.TempDir()
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := do(t, "", append([]string{"reduce"}, args...)...)
		if code != exitOK {
			t.Fatalf("pce reduce %s: %s", strings.Join(args, " "), stderr)
		}
		return out
	}
	own, none := filepath.Join(dir, "own.red"), filepath.Join(dir, "none.red")
	for path, sizes := range map[string]string{own: "size N = 1000, K = 10;\n", none: ""} {
		if err := os.WriteFile(path, []byte(fmt.Sprintf(source, sizes)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := ok("simplify", own)
	if got := ok("simplify", none, "-p", "N=1000,K=10"); got != want || !strings.Contains(want, "histogram") {
		t.Errorf("with sizes in the source:\n%s\nand on the command line:\n%s", want, got)
	}
	if got := ok("simplify", own, "-p", "N=2000"); !strings.Contains(got, "size N = 2000, K = 10;") {
		t.Errorf("simplified for other sizes:\n%s", got)
	}
	for _, args := range [][]string{{"show", own, "--emit", "go"}, {"simplify", own, "--emit", "go"}} {
		if got := ok(append(args, "-p", "N=2000")...); !strings.Contains(got, `"N": 2000,`) || strings.Contains(got, "1000") {
			t.Errorf("%v: the emitted program has other sizes than those given:\n%.300s", args, got)
		}
		if code, _, stderr := do(t, "", append(append([]string{"reduce"}, args...), "--json")...); code != exitUsage || !strings.Contains(stderr, "--emit") {
			t.Errorf("%v with --json: exit code %d, %s", args, code, stderr)
		}
	}
	if got := ok("run", none, "-p", "N=9,K=3", "--check"); !strings.Contains(got, "equal in all bits; 36 points, simplified 26") {
		t.Errorf("checked at sizes of the command line: %s", got)
	}
}

// TestReduceMissingSize wants a size that is missing named, whatever is run and before inputs are read: it was 0 there.
func TestReduceMissingSize(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"p.red": "param N;\ninput float x[N];\narray float y[N];\noutput y;\ny[i] = 2*x[i] : { [i] : 0 <= i < N };\n", "x.txt": "1 2 3\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range [][]string{nil, {"--data", "."}, {"--time"}, {"--check"}} {
		code, out, stderr := do(t, "", append([]string{"reduce", "run", "p.red"}, flags...)...)
		if want := "p.red:1:7: parameter N has no size"; code != exitData || out != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%v: exit code %d, %q, %q; want %q", flags, code, out, stderr, want)
		}
	}
}

// TestReduceNoSizes: of a program without parameters no sizes are printed.
func TestReduceNoSizes(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("p.red", []byte("input float x[3];\narray float y[3];\noutput y;\ny[i] = 2*x[i] : { [i] : 0 <= i < 3 };\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"show", "simplify"} {
		text := plain(t, "reduce", command, "p.red")
		if !strings.Contains(text, "points ") || strings.Contains(text, " at") {
			t.Errorf("%s prints %q", command, text)
		}
	}
}
