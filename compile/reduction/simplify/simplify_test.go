package simplify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
)

func parse(t testing.TB, source string) *reduction.Program {
	t.Helper()
	p, err := reduction.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shared returns the programs of ../shared/reduction by name.
func shared(t testing.TB) map[string]string {
	t.Helper()
	files, _ := filepath.Glob("../../../../shared/reduction/*.red")
	if len(files) == 0 {
		t.Skip("no programs in ../shared/reduction: put the .red files of the benchmarks there, beside the module")
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".red")] = string(b)
	}
	return out
}

// same runs both programs on the same inputs and reports an output that differs by more than tolerance, relative.
func same(p, q *reduction.Program, sizes map[string]int64, seed uint64, tolerance float64) error {
	data := map[string]*reduction.Tensor{}
	if err := p.Synthesise(sizes, seed, data, 1<<24); err != nil {
		return err
	}
	var out [2]*reduction.Outcome
	for k, r := range []*reduction.Program{p, q} {
		var err error
		if out[k], err = reduction.Interpret(context.Background(), r, reduction.Options{Sizes: sizes, Inputs: data}); err != nil {
			return fmt.Errorf("program %d: %w", k, err)
		}
	}
	for _, name := range p.Outputs {
		a, b := out[0].Outputs[name], out[1].Outputs[name]
		if d := a.Difference(b); !(d <= tolerance) {
			return fmt.Errorf("%s differs by %v: %v, simplified %v", name, d, a, b)
		}
	}
	return nil
}

// targets has the degrees of the shared programs, guards counted once, after simplification.
var targets = map[string]string{
	"ps": "N", "ps_opt": "N", "gs2gmm": "N", "gs2gmm_opt": "N", "windows": "N^2", "forest": "R*M", "lbp": "Y*X*K^2*D", "coxph": "N*K^2",
	"flow": "B*T*S^2", "gmm_gs": "N*K", "gmm_mh": "N + K", "gmm_lw": "N + K", "lda_gs": "W*K", "lda_mh": "W*K",
	"lda_lw": "W", "dmm_gs": "W + A*D*K", "dmm_mh": "W + A*D + D*K", "dmm_lw": "W + A*D",
}

var seeds = flag.Int("seeds", 6, "inputs, each at other sizes, for each shared program")

// TestShared simplifies the shared programs to their degrees, and wants the outputs of the original: the same bits
// where sums are exact, which those of lbp and coxph are not.
func TestShared(t *testing.T) {
	seeds := uint64(*seeds)
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	for name, source := range shared(t) {
		if testing.Short() && (strings.HasPrefix(name, "dmm") || name == "lda_mh" || name == "lbp") {
			continue // they take most of the time
		}
		p := parse(t, source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Error(name, err)
			continue
		}
		c, err := q.Cost(true)
		if err != nil {
			t.Error(name, err)
			continue
		}
		if d, err := c.Degree(); err != nil || d.String() != targets[name] {
			t.Errorf("%s: degree %v, %v; want %s", name, d, err, targets[name])
		}
		if p.String() != parse(t, source).String() {
			t.Errorf("%s: the program itself has changed", name)
		}
		tolerance := 0.0
		if name == "lbp" || name == "coxph" {
			tolerance = 1e-9
			for _, s := range r.Steps {
				if s.Subtracts {
					t.Errorf("%s: %v", name, s)
				}
			}
		}
		for seed := range seeds {
			sizes := map[string]int64{}
			for k, q := range p.Params {
				if sizes[q.Name] = 1 + int64(seed+uint64(k))%3; len(p.Params) < 3 {
					sizes[q.Name] = 1 + int64(seed*3+uint64(k))%8
				}
			}
			if name == "ps" || name == "ps_opt" || name == "windows" {
				sizes["N"]++
			}
			if name == "flow" {
				sizes["T"]++
			}
			if err := same(p, q, sizes, seed, tolerance); err != nil {
				t.Errorf("%s at %v, seed %d: %v", name, sizes, seed, err)
				break
			}
		}
	}
}

// TestRefusals wants the reasons for what is not done.
func TestRefusals(t *testing.T) {
	const decl = "param N, M : N >= 1, M >= 1; input float x[N], y[N,N]; input int w[N] in [0,N); array float s[N]; output s;"
	for _, c := range []struct{ text, want string }{
		{"s[i] += x[j]*x[i] : { [i,j] : 0 <= i < N, 0 <= j <= i };", "s: its body changes along every vector of the domain"},
		{"s[i] += x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i } if w[i] == j;", "s: its body changes along every vector of the domain"},
		{"s[i] += x[j]*i : { [i,j] : 0 <= i < N, 0 <= j <= i };", "s: its body changes along every vector of the domain"},
		{"s[i] *= x[j] : { [i,j] : 0 <= i < N, i-3 <= j <= i, 0 <= j };", "s: it has as many points as elements, up to a factor"},
		{"s[i] *= x[j] : { [i,j] : 0 <= i, i+M < N, i <= j <= i+M };", "s along [1,0]: the neighbour has terms too much, and *= has no inverse"},
		{"s[0] += x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i };", "s: along every vector on which its body does not change, its elements do not change either, or its domain is thin"},
	} {
		p := parse(t, decl+c.text)
		q, r, err := Simplify(p)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		found := false
		for _, f := range r.Refused {
			found = found || strings.HasSuffix(f.String(), c.want)
		}
		if !found || len(r.Steps) > 0 || q.String() != p.String() {
			t.Errorf("%s: %v, %v; want %s", c.text, r.Steps, r.Refused, c.want)
		}
	}
	const prefix = `param N : N >= 2; input float a0; array float A[N], B[N]; output B;
A[0] = a0 : { [] : }; B[i] += A[j] : { [i,j] : 0 <= i < N, 0 <= j <= i }; A[i+1] = 0.5*B[i] + 1.0 : { [i] : 0 <= i < N-1 };`
	_, r, err := Simplify(parse(t, prefix))
	if err != nil {
		t.Fatal(err)
	}
	const want = "refused   B along [-1,0]: its elements would be needed before they are there: schedule: no affine order of A, B, which need each other"
	if len(r.Refused) != 1 || r.Refused[0].String() != want {
		t.Errorf("%v; want %s", r.Refused, want)
	}
}

// TestDecompose wants the counts of a guarded sum to become an array, once for equal sums, and what the gather of data by
// a table does.
func TestDecompose(t *testing.T) {
	const decl = `param W, A, D : W >= 1, A >= 1, D >= 1; size W = 50, A = 4, D = 5; input int word[W] in [0,A), doc[W] in [0,D), y[D] in [0,D);
input float x[W], base[A]; array float s[D,A], r[D,A], l[D]; output s, r, l;
`
	for _, c := range []struct{ text, want string }{
		{`s[i,a] += x[w]*3 : { [i,a,d,w] : 0 <= i < D, 0 <= a < A, 0 <= d < D, 0 <= w < W } if doc[w] == d and y[d] == i and word[w] == a;
r[i,a] += 2*x[v] : { [i,a,e,v] : 0 <= i < D, 0 <= a < A, 0 <= e < D, 0 <= v < W } if doc[v] == e and y[e] <= i and word[v] == a;
l[i] += 1 : { [i] : 0 <= i < D };`, `s_1[a,d] += x[w] : { [a,d,w] : 0 <= a < A, 0 <= d < D, 0 <= w < W } if doc[w] == d and word[w] == a;
s[i,a] += 3*s_1[a,d] : { [i,a,d] : 0 <= i < D, 0 <= a < A, 0 <= d < D } if y[d] == i;
r[i,a] += 2*s_1[a,e] : { [i,a,e] : 0 <= i < D, 0 <= a < A, 0 <= e < D } if y[e] <= i;
l[i] += 1 : { [i] : 0 <= i < D };
`},
		{`s[i,a] += x[w] : { [i,a,d,w] : 0 <= i < D, 0 <= a < A, 0 <= d < D, 0 <= w < W } if doc[w] == d and y[d] == i and word[w] <= a + d + i;
r[i,a] = 1 : { [i,a] : 0 <= i < D, 0 <= a < A };
l[i] = 2 : { [i] : 0 <= i < D };`, `s[i,a] += x[w] : { [i,a,d,w] : 0 <= i < D, 0 <= a < A, 0 <= d < D, 0 <= w < W } if doc[w] == d and y[d] == i and word[w] <= a + d + i;
r[i,a] = 1 : { [i,a] : 0 <= i < D, 0 <= a < A };
l[i] = 2 : { [i] : 0 <= i < D };
`},
	} {
		p := parse(t, decl+c.text)
		q, _, err := Simplify(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.String(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
		for seed := range uint64(5) {
			if err := same(p, q, map[string]int64{"W": int64(1 + 4*seed), "A": 3, "D": int64(1 + seed)}, seed, 0); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSmallestSizes runs programs at sizes at which the arrays that steps add have no elements, where the original has none either.
func TestSmallestSizes(t *testing.T) {
	for _, source := range []string{
		`param N, M : N >= 0, M >= 0; input float x[N], y[N]; array float a[N]; output a;
a[i] += y[q] + x[i] : { [i,p,q] : 0 <= i < N-21, i < p < N, 0 <= q < N };`,
		`param N, M : N >= 0, M >= 0; input float x[N], y[N]; array float a[N]; output a;
a[i] += y[q] + x[i] : { [i,p,q] : 0 <= i < N-M, i < p < N, 0 <= q < N };`,
		`param N : N >= 0; input float x[N], y[N]; array float a[N]; output a;
a[i] += y[q] + x[i] : { [i,p,q] : 0 <= i < N, i < p < N, 0 <= q < N };`,
		`param N; input float x[N+2], y[N]; array float a[N+2]; output a;
a[i] += y[q] + x[i] : { [i,p,q] : 0 <= i < N-1, i < p < N, 0 <= q < N };`,
	} {
		p := parse(t, source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Steps) == 0 {
			t.Errorf("no steps, %v", r.Refused)
		}
		for n := range int64(4) {
			sizes := map[string]int64{"N": n}
			if len(p.Params) > 1 {
				sizes["M"] = 2
			}
			if err := same(p, q, sizes, 1, 0); err != nil {
				t.Errorf("N=%d: %v\n%v", n, err, q)
			}
		}
	}
}

// TestSmallestBins runs a program with bins at sizes at which data has no values, and is empty.
func TestSmallestBins(t *testing.T) {
	p := parse(t, `param N, K : N >= 0, K >= 0; size N = 1000, K = 20; input int z[N] in [0,K-12), q[N] in [0,K-12); input float x[N]; array float s[N]; output s;
s[k] += x[i] : { [k,i] : 0 <= k < N, 0 <= i <= k } if z[i] == q[k];`)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Kind == Histogram }) {
		t.Errorf("no bins: %v", r.Refused)
	}
	for _, sizes := range []map[string]int64{{"N": 0, "K": 0}, {"N": 0, "K": 12}, {"N": 1, "K": 13}, {"N": 9, "K": 15}} {
		if err := same(p, q, sizes, 1, 0); err != nil {
			t.Errorf("%v: %v\n%v", sizes, err, q)
		}
	}
}

// TestRecurrences simplifies programs in which arrays need themselves, and wants the outputs of the original.
func TestRecurrences(t *testing.T) {
	for name, source := range map[string]string{
		"a part of the array": `param N, M : N >= 1, M >= 1; size N = 4, M = 5; input float x[M]; array float a[N,M]; output a;
a[i,j] += x[j] : { [i,j] : 0 <= i < N, 0 <= j < M };
a[i,j] += 0.5*a[i-1,k] : { [i,j,k] : 1 <= i < N, 0 <= j < M, 0 <= k < M };`,
		"window": `param N, M : N >= 1, M >= 1; size N = 9, M = 3; input float x[N]; array float a[N], b[N]; output b;
a[i] += b[j] : { [i,j] : 0 <= i < N, 0 <= j, i-M <= j < i };
b[i]  = x[i] + 0.5*a[i] : { [i] : 0 <= i < N };`,
		"backward": `param N : N >= 1; size N = 9; input float x[N]; array float a[N], b[N]; output b;
a[i] max= b[j] : { [i,j] : 0 <= i < N, i < j < N };
b[i]  = select(a[i] > x[i], a[i] - x[i], x[i]) : { [i] : 0 <= i < N };`,
		"prefixes of prefixes": `param N : N >= 1; size N = 6; input float x[N]; array float a[N,N]; output a;
a[i,j] += x[k]*x[l] : { [i,j,k,l] : 0 <= i < N, 0 <= j < N, 0 <= k <= i, 0 <= l <= j };`,
		"an end that is not written": `param N : N >= 2; size N = 6; input float x[N]; array float c[N], a[N]; output a;
c[i] += x[k] : { [i,k] : 0 <= i < N-1, 0 <= k < N };
a[i] += c[j] : { [i,j] : 0 <= i < N, 0 <= j <= i };`,
		"an array in two parts": `param N : N >= 2; size N = 6; input float x[N]; array float c[N], a[N]; output a;
c[i]  = x[0] : { [i] : 0 <= i < N-1 };
c[i]  = x[1] : { [i] : i = N-1 };
a[i] += c[j]*x[0] : { [i,j] : 0 <= i < N, 0 <= j <= i };`,
		"strides": `param N : N >= 1; size N = 6; input float x[N]; array float a[N]; output a;
a[i] += x[j] : { [i,j] : 0 <= i < N, 0 <= 2*j <= i };`,
		"a sum of a sum": `param N : N >= 1; size N = 6; input float x[2*N], y[N]; array float a[N]; output a;
a[i] += x[j+k]*y[k] : { [i,j,k] : 0 <= i < N, 0 <= j < N, 0 <= k < N };`,
		"triangle": `param N : N >= 1; size N = 6; input float x[N,N]; array float a[N,N]; output a;
a[i,j] += x[k,l] : { [i,j,k,l] : 0 <= i < N, i <= j < N, i <= k <= l, l <= j };`,
	} {
		p := parse(t, source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(r.Steps) == 0 {
			t.Errorf("%s: no steps, %v", name, r.Refused)
		}
		for seed := range uint64(8) {
			sizes := map[string]int64{"N": int64(2 + seed)}
			if len(p.Params) > 1 {
				sizes["M"] = int64(1 + seed%4)
			}
			if err := same(p, q, sizes, seed, 1e-12); err != nil {
				t.Errorf("%s at %v: %v\n%v", name, sizes, err, q)
				break
			}
		}
	}
}

// TestInPlace wants the steps around arrays that are kept in place, no more than these, and the outputs of the original.
func TestInPlace(t *testing.T) {
	const decl = `param W, K, V : W >= 2, K >= 1, V >= 1; size W = 500, K = 5, V = 20; input int w[W] in [0,V), old[W] in [0,K); input float x[W];
`
	for _, c := range []struct{ name, text, steps, degree string }{
		{"read in its direction", `array float l[W]; output l;
l[k] += x[i] : { [k,i] : 0 <= k < W, 0 <= i < k } if old[i] == old[k] and w[i] == w[k];`, "histogram reuse in place", "W"},
		{"read against it", `array float r[W], y[W]; array int q[W] in [0,K); output y;
q[k] = select(x[k] > 0.5, old[k], 0) : { [k] : k = 0 };
q[k] = select(x[k]*y[k-1] > 0.5, old[k], 0) : { [k] : 1 <= k < W };
r[k] += x[i] : { [k,i] : 0 <= k < W, k < i < W } if old[i] == q[k];
y[k] = r[k] : { [k] : 0 <= k < W };`, "histogram reuse in place", "W"},
		{"all but one", `array float n[W]; output n;
n[k] += x[i] : { [k,i] : 0 <= k < W, 0 <= i < W, i != k } if w[i] == w[k];`, "histogram reuse reuse in place in place", "W"},
		{"little is read of a copy", `array float a[W,K], y[W]; output y;
a[k,t] += x[i] : { [k,t,i] : 0 <= k < W, 0 <= t < K, 0 <= i < k } if old[i] == t and w[i] == w[k];
y[k] = a[k,old[k]] : { [k] : 0 <= k < W };`, "histogram reuse forward in place", "W"},
		{"an output", `array float a[W,K]; output a;
a[k,t] += x[i] : { [k,t,i] : 0 <= k < W, 0 <= t < K, 0 <= i < k } if old[i] == t;`, "reuse", "W*K"},
		{"two neighbours at a time", `array float a[W,K], y[W]; output y;
a[k,t] += x[i] : { [k,t,i] : 0 <= k < W, 0 <= t < K, 0 <= i < k } if old[i] == t;
y[k] = a[k,old[k]] - a[k-1,old[k]] : { [k] : 1 <= k < W };
y[k] = 0 : { [k] : k = 0 };`, "reuse", "W*K"},
	} {
		p := parse(t, decl+c.text)
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(c.name, err)
		}
		var steps []string
		for _, s := range r.Steps {
			steps = append(steps, s.Kind)
		}
		if got := strings.Join(steps, " "); got != c.steps {
			t.Errorf("%s: steps %s, want %s\n%v", c.name, got, c.steps, q)
		}
		cost, err := q.Cost(true)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if d, err := cost.Degree(); err != nil || d.String() != c.degree {
			t.Errorf("%s: degree %v, %v; want %s", c.name, d, err, c.degree)
		}
		again, _, err := Simplify(q)
		if err != nil {
			t.Errorf("%s, simplified again: %v", c.name, err)
			continue
		}
		for seed := range uint64(6) {
			sizes := map[string]int64{"W": int64(2 + 3*seed), "K": int64(1 + seed%3), "V": int64(1 + seed%4)}
			if err := same(p, q, sizes, seed, 0); err != nil {
				t.Errorf("%s at %v: %v", c.name, sizes, err)
			}
			if err := same(p, again, sizes, seed, 0); err != nil {
				t.Errorf("%s, simplified again, at %v: %v", c.name, sizes, err)
			}
		}
	}
}

// TestBinsOfTypes simplifies equal sums of which one is of integers and the other of floats: they have no array in common.
func TestBinsOfTypes(t *testing.T) {
	p := parse(t, `param N, K : N >= 2, K >= 1; size N = 1000, K = 8; input int z[N] in [0,K), q[N] in [0,K), x[N] in [0,9);
array float s[N]; array int t[N]; output s, t;
s[k] += x[i] : { [k,i] : 0 <= k < N, 0 <= i < k } if z[i] == q[k];
t[k] += x[i] : { [k,i] : 0 <= k < N, 0 <= i < k } if z[i] == q[k];
`)
	q, _, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(4) {
		if err := same(p, q, map[string]int64{"N": int64(5 + seed), "K": 3}, seed, 0); err != nil {
			t.Errorf("%v\n%v", err, q)
		}
	}
}

// TestBinsOfOthers simplifies guards with values that may be outside of the range of what they are compared with. No point has those.
func TestBinsOfOthers(t *testing.T) {
	for _, q := range []string{
		"input int q[N] in [0,2*K);",
		"input int v[N] in [0,2*K); array int q[N]; q[k] = v[k] - 1 : { [k] : 0 <= k < N };",
	} {
		p := parse(t, `param N, K : N >= 2, K >= 1; size N = 1000, K = 8; input int z[N] in [0,K); input float x[N]; array float s[N]; output s; `+q+`
s[k] += x[i] : { [k,i] : 0 <= k < N, 0 <= i < k } if z[i] == q[k];
`)
		simple, report, err := Simplify(p)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Steps, func(s Step) bool { return s.Kind == Histogram }) {
			t.Errorf("no bins:\n%v", simple)
		}
		for seed := range uint64(4) {
			if err := same(p, simple, map[string]int64{"N": int64(9 + seed), "K": 3}, seed, 1e-9); err != nil {
				t.Errorf("%v\n%v", err, simple)
			}
		}
	}
}

// TestGaps simplifies a sum with a guard into elements with gaps between them, every other one. N is odd, so that the last of them is N-1,
// and N is outside of the array.
func TestGaps(t *testing.T) {
	p := parse(t, `param N, M : M >= 0, N = 2*M + 1; size N = 1001, M = 500;
input int z[N] in [0,7), q[N] in [0,7); input float x[N]; array float s[N]; output s;
s[k] += x[i] : { [k,m,i] : 0 <= k <= N, 2*m = k, 0 <= i < N, i <= k } if z[i] == q[k];`)
	q, _, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	for m := range int64(4) {
		if err := same(p, q, map[string]int64{"N": 2*m + 1, "M": m}, 1, 1e-12); err != nil {
			t.Errorf("M=%d: %v\n%v", m, err, q)
		}
	}
}

// TestSomeSizes simplifies a sum that has points at some sizes alone: where two that the context orders are equal.
func TestSomeSizes(t *testing.T) {
	p := parse(t, `param N, M : N >= 1, M >= N; size N = 1000, M = 1000; input float x[N]; array float s[N]; output s;
s[k] += x[i] : { [k,i] : N = M, 0 <= k < N, 0 <= i <= k };`)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) == 0 {
		t.Errorf("no steps, %v", r.Refused)
	}
	for m := range int64(3) {
		if err := same(p, q, map[string]int64{"N": 5, "M": 5 + m}, 1, 1e-12); err != nil {
			t.Errorf("M=%d: %v\n%v", 5+m, err, q)
		}
	}
}

// TestGuardedFactors simplifies a sum whose guard keeps out data that would be an index outside of a factor.
func TestGuardedFactors(t *testing.T) {
	p := parse(t, `param N, K, M : N >= 2, K >= 2, M >= 1; size N = 1000, K = 50, M = 8;
input int h[N] in [0,M+1); input float u[K,M]; array float t[K,M], s[K]; output s;
t[k,m] = u[k,m]*u[k,m] : { [k,m] : 0 <= k < K, 0 <= m < M };
s[k] += t[k,h[i]] : { [k,i] : 0 <= k < K, 0 <= i < N } if h[i] < M;
`)
	q, _, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(p, q, map[string]int64{"N": 9, "K": 3, "M": 4}, 1, 1e-9); err != nil {
		t.Errorf("%v\n%v", err, q)
	}
}

// divided returns a program and the simplified one, in which a sum is divided.
func divided(t *testing.T, source string) (p, q *reduction.Program) {
	t.Helper()
	p = parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Kind == Decompose }) {
		t.Errorf("%s is not divided: %v", source, r.Refused)
	}
	return p, q
}

// TestKeptOut divides sums whose factors are infinite, or not there, at points that no guard lets through: the log of a probability of 0 that
// no data has, and a draw from no points.
func TestKeptOut(t *testing.T) {
	const head = "param N, K, C : N >= 1, K >= 1, C >= 1; size N = 1000, K = 10, C = 5; input int z[N] in [0,K); input float w[C,K]; array float s[C]; output s;\n"
	for _, source := range []string{
		"s[c] += log(w[c,k]) : { [c,k,i] : 0 <= c < C, 0 <= k < K, 0 <= i < N } if z[i] == k;",
		"array float p[C,K]; p[c,k] = w[c,k]/2 : { [c,k] : 0 <= c < C, 0 <= k < K }; s[c] += log(p[c,z[i]]) : { [c,i] : 0 <= c < C, 0 <= i < N };",
		"array int d[K]; d[k] draw(0.5)= 1 : { [k,j] : 0 <= k < K, 0 <= j < 9 } if k < 2; s[c] += d[k] : { [c,k,i] : 0 <= c < C, 0 <= k < K, 0 <= i < N } if z[i] == k;",
		"array int d[K]; d[k] draw(0.5)= 1 : { [k,j] : 0 <= k < K, 0 <= j < 9 } if k < 2; s[c] += c : { [c,k,i] : 0 <= c < C, 0 <= k < K, 0 <= i < N } if z[i] == k and d[k] >= 0;",
		"array int d[K], n[K]; d[k] draw(0.5)= 1 : { [k,j] : 0 <= k < K, 0 <= j < 9 } if k < 2; n[k] += d[k] + j : { [k,j] : 0 <= k < K, 0 <= j < 2 }; s[c] += c*n[k] : { [c,k,i] : 0 <= c < C, 0 <= k < K, 0 <= i < N } if z[i] == k;",
	} {
		p, q := divided(t, head+source)
		var out [2]*reduction.Outcome
		for k, program := range []*reduction.Program{p, q} {
			var err error
			out[k], err = reduction.Interpret(context.Background(), program, reduction.Options{
				Sizes: map[string]int64{"N": 3, "K": 3, "C": 2},
				Inputs: map[string]*reduction.Tensor{
					"z": {Extents: []int64{3}, Ints: []int64{0, 1, 1}},
					"w": {Extents: []int64{2, 3}, Floats: []float64{0.5, 0.5, 0, 0.25, 0.75, 0}},
				}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if d := out[0].Outputs["s"].Difference(out[1].Outputs["s"]); !(d <= 1e-12) {
			t.Errorf("%s\ngives %v, simplified %v\n%v", source, out[0].Outputs["s"].Floats, out[1].Outputs["s"].Floats, q)
		}
	}
}

// TestNoValues divides a sum over a dimension that has no values at some sizes, where the other factor may be infinite, or not there, and
// is not looked at.
func TestNoValues(t *testing.T) {
	const head = "param N, K : N >= 0, K >= 1; size N = 1000, K = 10; input float x[N], w[K]; array float s[]; output s;\n"
	for _, source := range []string{
		"s[] += log(w[k])*x[i] : { [i,k] : 0 <= i < N, 0 <= k < K };",
		"array float d[K]; d[k] = w[k] : { [k] : 0 <= k < K } if w[k] > 0; s[] += x[i]*d[k] : { [i,k] : 0 <= i < N, 0 <= k < K };",
	} {
		_, q := divided(t, head+source)
		out, err := reduction.Interpret(context.Background(), q, reduction.Options{
			Sizes:  map[string]int64{"N": 0, "K": 2},
			Inputs: map[string]*reduction.Tensor{"x": {Extents: []int64{0}, Floats: []float64{}}, "w": {Extents: []int64{2}, Floats: []float64{0.5, 0}}},
		})
		if err != nil || out.Outputs["s"].Floats[0] != 0 {
			t.Errorf("%s: %v, %v\n%v", source, out, err, q)
		}
	}
}
