package gosource

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmittedRefuses runs an emitted program with sizes and inputs that are not those of the program, and wants a line that
// says so where numbers, or a trace of Go, would come otherwise.
func TestEmittedRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to compile with; install Go")
	}
	p := parse(t, `param N, K, D : N >= 2, K != 9;
size N = 3, K = 2;
input int z[N] in [0,K);
input float x[N,2];
array float A[K], B[D], H[N];
array int c[N] in [0,21), s[] in [0,13);
output A, B, c, s, H;
H[i] = x[i,0] : { [i] : 0 <= i < N } if z[i] + 2 != D;
A[k] += x[i,1] : { [k,i] : 0 <= k < K, 0 <= i < N } if z[i] == k;
B[d] = d : { [d] : 0 <= d < D };
c[i] = 9*K + i : { [i] : 0 <= i < N };
s[] += D : { [i] : 0 <= i < N };
`)
	source, err := Source(p, "main")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Source(parse(t, "array int z[] in [0,2); output z; z[] draw(0.5)= 1 : { [k] : 0 <= k < 9 };"), "drawn")
	if err != nil || !strings.Contains(drawn, "ranged(draw(") {
		t.Errorf("no look at what is drawn: %v\n%s", err, drawn)
	}
	lacks, err := Source(parse(t, "input float x[9]; array float y[9], z[]; output z; y[i] = x[i] : { [i] : 0 <= i < 9 } if x[i] > 0; z[] += y[i] : { [i] : 1 <= i < 9 };"), "lacks")
	if err != nil || !strings.Contains(lacks, "a_y[k] = math.NaN()") {
		t.Errorf("elements that no point writes are numbers: %v\n%s", err, lacks)
	}
	if half, err := Source(parse(t, "param N : N >= 1; input float x[N,N]; array float y[N,N], z[N]; output z; y[i,j] = x[i,j] : { [i,j] : 0 <= i <= j, j < N }; z[i] += y[i,N-1] : { [i] : 0 <= i < N };"), "half"); err != nil || strings.Contains(half, "a_y[k] = math.NaN()") {
		t.Errorf("elements that nothing reads are written: %v\n%s", err, half)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": source, "go.mod": "module emitted\n\ngo 1.21\n", "z.txt": "0 1 1\n", "x.txt": "0 1\n0 2\n0 3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "program", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for folder, text := range map[string]string{"nan": "0 1\n0 nan\n0 3\n", "words": "0 1\n0 one\n0 3\n"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"z.txt": "0 1 1\n", "x.txt": text} {
			if err := os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct{ args, want string }{
		{"-p|D=1", ""},
		{"-p|D=1|-data|nan", `value 4 for x is "nan", want a number of type float`},
		{"-p|D=1|-data|words", `value 4 for x is "one", want a number of type float`},
		{"-p|D=0, N = 3,K=2", ""},
		{"-p|K=3", "parameter D has no size"},
		{"-p|D", "-p D: want NAME=INTEGER of a parameter"},
		{"-p|D=1,d=2", "-p d=2: want NAME=INTEGER of a parameter"},
		{"-p|D=1,|K=3", "K=3: want flags alone"},
		{"-p|D=1,N=1", "N >= 2 does not hold at these sizes"},
		{"-p|D=1,K=9", "K != 9 does not hold at these sizes"},
		{"-p|D=4000000000000000000", "B has 4000000000000000000 elements in memory, for which 9223372036854775791 bytes are left; choose smaller sizes, or raise the limit (--max-memory)"},
		{"-p|D=500000000000000000", "runtime error: makeslice: len out of range"},
		{"-p|D=1|-max-memory|87", ""}, // 80 of arrays, 7 of what notes which elements of B, H and c are written
		{"-p|D=1|-max-memory|86", "s has 1 elements in memory, for which 7 bytes are left; choose smaller sizes, or raise the limit (--max-memory)"},
		{"-p|D=-1", "an extent of B is -1 at these sizes; want at least 0"},
		{"-p|D=1,N=2", "3 values for z; want 2 at these sizes"},
		{"-p|D=1,N=4", "3 values for z; want 4 at these sizes"},
		{"-p|D=1,K=1", "value 2 for z is 1; want 0 to 0"},
		{"-p|D=1,K=3", "a value of c is 27; want 0 to 20"},
		{"-p|D=5", "a value of s is 15; want 0 to 12"},
		{"-p|D=2", "an element of H is needed and no point writes it"},
	} {
		program := exec.Command(filepath.Join(dir, "program"), strings.Split(c.args, "|")...)
		program.Dir = dir
		out, err := program.CombinedOutput()
		if text := strings.TrimSpace(string(out)); (err != nil) != (c.want != "") || c.want != "" && text != c.want {
			t.Errorf("%s: %v, %.300s; want %q", c.args, err, text, c.want)
		}
	}
}
