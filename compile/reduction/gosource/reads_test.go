package gosource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
)

// TestLackingReads wants elements that no point writes refused where an output needs them, also through arrays that it needs as a whole,
// and numbers where it does not.
func TestLackingReads(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go")
	}
	p := parse(t, `param C; input float x[3];
array int d[3], e[3], n[3], l[3]; array float f[3], g[3], r[3], q[3], s[3], o[3], p[3]; output o, p;
d[i] draw(x[i])= 1 : { [i,k] : 0 <= i < 3, 0 <= k < 3 } if C != 1;
e[i] = 2 - i : { [i] : 0 <= i < 3 } if C != 2 and C != 8;
f[i] = x[i] : { [i] : 0 <= i < 3 } if C != 3;
g[i] = f[i] + 1 : { [i] : 0 <= i < 3 };
r[i] = x[i] : { [i] : i = 0 };
q[i] = r[i] + 1 : { [i] : 0 <= i < 3 };
n[i] = 7 : { [i] : 0 <= i < 3 } if C != i + 4;
l[i] += n[i] : { [i] : 0 <= i < 3 };
s[i] += l[i] : { [i] : 0 <= i < 3 };
s[i] += o[i-1] : { [i] : 1 <= i < 3 };
o[i] += x[d[i]] + q[0] + s[i] : { [i] : 0 <= i < 3 };
p[i] += select(C == 8, 1, x[e[i]]) : { [i] : 0 <= i < 3 };
p[i] += g[2-i] : { [i] : 0 <= i < 3 };
`)
	source, err := Source(p, "lacking")
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{0.25, 0.5, 0.75}
	const lacks = "an element of %s is needed and no point writes it"
	want := []string{"", "d", "e", "f", "n", "n", "n", "", ""}
	var in bytes.Buffer
	for c := range want {
		if err := json.NewEncoder(&in).Encode(request{"lacking", map[string]int64{"C": int64(c)}, nil, map[string][]float64{"x": x}}); err != nil {
			t.Fatal(err)
		}
	}
	program := exec.Command(module(t, map[string]string{"lacking": source}))
	program.Stdin = &in
	out, err := program.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for c, name := range want {
		var got map[string]string
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			name = strings.Replace(lacks, "%s", name, 1)
		}
		if got["error"] != name || name == "" && strings.Contains(got["o"]+got["p"], "NaN") {
			t.Errorf("C=%d: %v; want the error %q", c, got, name)
		}
		_, err := reduction.Interpret(context.Background(), p, reduction.Options{
			Sizes: map[string]int64{"C": int64(c)}, Inputs: map[string]*reduction.Tensor{"x": {Extents: []int64{3}, Floats: x}}})
		if (err != nil) != (name != "") {
			t.Errorf("C=%d: the interpreter says %v", c, err)
		}
	}
}

// TestSureReads wants no notes of what is written where all that is read is there.
func TestSureReads(t *testing.T) {
	for text, want := range map[string]bool{"c[0,j] + c[j,N-1]": false, "c[0,j] + c[N-1,j]": true} {
		source, err := Source(parse(t, `param N : N >= 1; input float x[N]; array float c[N,N], b[N]; output b;
c[i,j] = x[j] : { [i,j] : 0 <= i < N, i <= j < N };
b[j] += `+text+` : { [j] : 0 <= j < N };`), "p")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(source, "w_c") != want {
			t.Errorf("%s: notes %v, want %v", text, !want, want)
		}
	}
}

// TestManyArrays wants the work for a program of arrays each of which needs the one before to grow with no more than about the square of
// their number.
func TestManyArrays(t *testing.T) {
	work := func(n int) float64 {
		var arrays, statements strings.Builder
		for k := 1; k < n; k++ {
			fmt.Fprintf(&arrays, "a%d[N], ", k)
			fmt.Fprintf(&statements, "a%d[i] = a%d[i] + 1 : { [i] : 0 <= i < N };\n", k, k-1)
		}
		p := parse(t, fmt.Sprintf("param N : N >= 1; input int z[N] in [0,2); array float %sa0[N]; output a%d;\na0[i] = 1 : { [i] : 0 <= i < N } if z[i] == 0;\n%s", &arrays, n-1, &statements))
		return testing.AllocsPerRun(1, func() {
			if _, err := Source(p, "p"); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := work(30), work(60); !(many < 5*few) {
		t.Errorf("%v allocations for 30 arrays, %v for 60", few, many)
	}
}
