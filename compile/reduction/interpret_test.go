package reduction

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// run interprets a program with inputs that are made from a seed, but for those given.
func run(t testing.TB, p *Program, seed uint64, sizes map[string]int64, inputs map[string]*Tensor) (*Outcome, error) {
	t.Helper()
	all := p.DefaultSizes()
	for name, n := range sizes {
		all[name] = n
	}
	data := map[string]*Tensor{}
	for name, x := range inputs {
		data[name] = x
	}
	if err := p.Synthesise(all, seed, data, 1<<20); err != nil {
		t.Fatal(err)
	}
	return Interpret(context.Background(), p, Options{Sizes: sizes, Inputs: data})
}

func floats(x ...float64) *Tensor {
	return &Tensor{Extents: []int64{int64(len(x))}, Floats: x}
}

func ints(x ...int64) *Tensor {
	return &Tensor{Extents: []int64{int64(len(x))}, Ints: x}
}

// TestOperators compares every operator with a loop.
func TestOperators(t *testing.T) {
	x := []float64{0.5, 0.25, 0.75, 0.125, 1.5}
	w := []int64{2, 0, 2, 1, 0}
	o, err := run(t, parse(t, programs["all"]), 1, nil, map[string]*Tensor{"x": floats(x...), "w": ints(w...), "u": floats(0, 0.3, 0.5, 0.9, 1)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float64{"s": make([]float64, 3), "p": {1}, "hi": {}, "lo": {}}
	lse := 0.0
	for i, a := range x {
		if a != 0.25 {
			want["s"][w[i]] += a - -2.5e-3*(a+1)
		}
		want["p"][0] *= a
		lse += math.Sqrt(a * 2)
		hi, lo := math.Inf(-1), math.Inf(1)
		for j, b := range x {
			if j > i {
				hi = max(hi, b)
			}
			if j != i {
				if b >= 0.5 {
					b = 1 - b
				}
				lo = min(lo, b)
			}
		}
		want["hi"] = append(want["hi"], hi)
		want["lo"] = append(want["lo"], lo)
	}
	want["l"] = []float64{math.Log(lse)}
	for name, list := range want {
		for k, y := range list {
			if got := o.Outputs[name].Floats[k]; !(math.Abs(got-y) <= 1e-15 || got == y) {
				t.Errorf("%s[%d] = %v, want %v", name, k, got, y)
			}
		}
	}
	// Weights exp(0.5), exp(0.25), exp(0.75): shares 0.324, 0.252, 0.424.
	if z := o.Outputs["z"].Ints; !slices.Equal(z, []int64{0, 0, 1, 2, 2}) {
		t.Errorf("z = %v", z)
	}
	if n := o.Outputs["n"].Ints[0]; n != 2*5-10 {
		t.Errorf("n = %d, want 0", n)
	}
	c := o.Outputs["c"].Floats
	for i := range 5 {
		for j := range 5 {
			want := math.Floor(x[i]) + 0.5
			if j == 2*i {
				g, _ := math.Lgamma(2)
				d := x[j] - g
				want = x[w[i]] + 0.5*(d*d/1.5+math.Log(2*math.Pi*1.5))
			}
			if got := c[5*i+j]; !(math.Abs(got-want) <= 1e-15) {
				t.Errorf("c[%d,%d] = %v, want %v", i, j, got, want)
			}
		}
	}
	if !slices.Equal(o.Points[:2], []int64{15, 5}) {
		t.Errorf("%v points evaluated, want 15 of s and 5 of p first", o.Points)
	}
}

// TestSmallLogs takes logs of numbers below the least normal one.
func TestSmallLogs(t *testing.T) {
	p := parse(t, "input float x; array float y[]; output y; y[] = log(x) : { [] : };")
	for _, x := range []float64{5e-324, 1e-310, 0x1p-1022, 0.5} {
		o, err := run(t, p, 1, map[string]int64{}, map[string]*Tensor{"x": {Floats: []float64{x}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := o.Outputs["y"].Floats[0], math.Log(math.Ldexp(x, 52))-52*math.Ln2; math.Abs(got-want) > 1e-12 {
			t.Errorf("log(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestDrawnApart draws from all places but one, written both ways. The running weight goes up the places.
func TestDrawnApart(t *testing.T) {
	for _, apart := range []string{"i != j", "j != i"} {
		p := parse(t, "param N : N >= 2; size N = 3; input float u[N], w[N]; array int d[N]; output d; d[i] draw(u[i])= w[j] : { [i,j] : 0 <= i < N, 0 <= j < N, "+apart+" };")
		o, err := run(t, p, 1, nil, map[string]*Tensor{"u": floats(0.1, 0.1, 0.9), "w": floats(4, 1, 2)})
		if err != nil {
			t.Fatal(err)
		}
		if d := o.Outputs["d"].Ints; !slices.Equal(d, []int64{1, 0, 1}) {
			t.Errorf("%s: drawn %v, want 1, 0 and 1", apart, d)
		}
	}
}

// TestDeepChain runs a chain that is longer than what is in hand at a time.
func TestDeepChain(t *testing.T) {
	p := parse(t, `param N : N >= 2;
input float a;
array float y[N], z[];
output z;
y[0] = a : { [] : };
y[i] = y[i-1] + 1 : { [i] : 1 <= i < N };
z[] += y[i] : { [i] : i = N-1 };
`)
	for _, n := range []int64{2, maxDepth - 1, maxDepth, maxDepth + 1, 5*maxDepth + 3} {
		o, err := run(t, p, 1, map[string]int64{"N": n}, map[string]*Tensor{"a": {Floats: []float64{0.5}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Outputs["z"].Floats[0]; got != float64(n-1)+0.5 {
			t.Errorf("N = %d: %v", n, got)
		}
		if !slices.Equal(o.Points, []int64{1, n - 1, 1}) { // also of elements that were put off
			t.Errorf("N = %d: %v points, want 1, %d and 1", n, o.Points, n-1)
		}
	}
}

// TestFailures has what goes wrong only when a program is run.
func TestFailures(t *testing.T) {
	const decl = head + "array float y[N]; array int z[N] in [0,K); output y;\n"
	for _, c := range []struct {
		source string
		sizes  map[string]int64
		inputs map[string]*Tensor
		want   string
	}{
		{decl + "z[i] = 0 : { [i] : 0 <= i < N };\ny[i] = y[N-1-i] : { [i] : 0 <= i < N };", nil, nil, "7:8: y[0] needs itself: y[0] <- y[4] <- y[0]"},
		{decl + "z[i] = 0 : { [i] : 0 <= i < N };\ny[i] = 1 : { [i] : 1 <= i < N };", nil, nil, "7:1: y[0] is needed and no point writes it"},
		{decl + "z[i] = i : { [i] : 0 <= i < N };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, nil, "6:1: z[3] is 3; want 0 to 2"},
		{decl + "z[i] = w[i]-1 : { [i] : 0 <= i < N };\ny[i] = x[w[i]-1] : { [i] : 0 <= i < N };", nil, map[string]*Tensor{"w": ints(0, 0, 0, 0, 0)}, "7:8: index w[i] - 1 of x is -1; want 0 to 4"},
		{decl + "z[i] = floor(x[i]/0.0) : { [i] : 0 <= i < N };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, nil, "6:8: floor of +Inf does not fit into 64 bits"},
		{decl + "z[i] *= 4611686018427387904 : { [i,j] : 0 <= i < N, 0 <= j < N };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, nil, "6:1: z[0] does not fit into 64 bits"},
		{decl + "z[i] = 9223372036854775807 + w[i] : { [i] : 0 <= i < N };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, map[string]*Tensor{"w": ints(1, 1, 1, 1, 1)}, "6:28: 9223372036854775807 + 1 does not fit into 64 bits"},
		{decl + "z[i] draw(u[i])= x[k] - 2 : { [i,k] : 0 <= i < N, 0 <= k < K, k < N };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, map[string]*Tensor{"x": floats(1, 1, 1, 1, 1)}, "6:1: z[0] is drawn with a weight of -1 at 0; want numbers of at least 0"},
		{decl + "z[i] draw(u[i]*0+2)= 1 : { [i,k] : 0 <= i < N, 0 <= k < K };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, nil, "6:1: z[0] is drawn by 2 from weights that add up to 3; want 0 to 1, and a finite sum above 0"},
		{decl + "z[i] draw(u[i])= 0*k : { [i,k] : 0 <= i < N, 0 <= k < K };\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, map[string]*Tensor{"u": floats(1, 1, 1, 1, 1)}, "6:1: z[0] is drawn by 1 from weights that add up to 0; want 0 to 1, and a finite sum above 0"},
		{decl + "z[i] draw(u[i])= 1 : { [i,k] : 0 <= i < N, 0 <= k < K } if x[i] > 9;\ny[i] = z[i] : { [i] : 0 <= i < N };", nil, nil, "6:1: z[0] is drawn from no points"},
		{programs["prefix"], map[string]int64{"N": 1}, nil, "1:11: N >= 2 does not hold at these sizes"},
		{programs["prefix"], map[string]int64{"M": 1}, nil, "a size is given for M, which is not a parameter"},
		{programs["all"], nil, map[string]*Tensor{"w": ints(0, 1, 2, 3, 0)}, "4:11: input w has the value 3 at [3]; want 0 to 2"},
		{"param K;\nsize K = -2;\ninput int w[2] in [0,K);\narray int y[2];\noutput y;\ny[i] = w[i] : { [i] : 0 <= i < 2 };", nil, map[string]*Tensor{"w": ints(1, 7)}, "3:11: input w has the value 1 at [0]; want 0 to -3"},
		{"param K;\nsize K = -2;\narray int y[2] in [0,K);\noutput y;\ny[i] = 1 : { [i] : 0 <= i < 2 };", nil, nil, "5:1: y[0] is 1; want 0 to -3"},
		{programs["all"], nil, map[string]*Tensor{"w": ints(0, 1, 2)}, "4:11: input w has extents [3]; want [5]"},
		{programs["all"], nil, map[string]*Tensor{"w": floats(0, 1, 2, 0, 0)}, "4:11: input w has values of another type; want int"},
	} {
		p := parse(t, c.source)
		_, err := run(t, p, 1, c.sizes, c.inputs)
		if !errors.Is(err, ErrProgram) || err.Error() != c.want {
			t.Errorf("%s\ngives %v, want\n%s", p, err, c.want)
		}
	}
}

// TestIntegers goes to the ends of 64 bits: only a whole sum has to fit, and -2^63 does.
func TestIntegers(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		body string
		w    []int64
		want int64
		ok   bool
	}{
		{"y[] += w[i]", []int64{most, most, -most, 1 - most}, 1, true},
		{"y[] += w[i]", []int64{-most, -most, most, -1}, -most - 1, true},
		{"y[] += w[i]", []int64{most, most, -most, 0}, most, true},
		{"y[] += w[i]", []int64{most, most, 1 - most, 0}, 0, false},
		{"y[] += w[i]", []int64{-most, -most, most - 2, 0}, 0, false},
		{"y[] *= w[i]", []int64{-most - 1, 1, 1, 1}, -most - 1, true},
		{"y[] *= w[i]", []int64{-1 << 32, 1 << 31, 1, 1}, -most - 1, true},
		{"y[] *= w[i]", []int64{1 << 32, 1 << 31, 1, 1}, 0, false},
		{"y[] *= w[i]", []int64{-most - 1, -1, 1, 1}, 0, false},
		{"y[] *= w[i]", []int64{-most - 1, 2, 0, 1}, 0, false},
	} {
		p := parse(t, "param N; size N = 4; input int w[N]; array int y[]; output y; "+c.body+" : { [i] : 0 <= i < N };")
		o, err := run(t, p, 1, nil, map[string]*Tensor{"w": ints(c.w...)})
		if (err == nil) != c.ok || err == nil && o.Outputs["y"].Ints[0] != c.want {
			t.Errorf("%s of %d: %v, %v; want %d", c.body, c.w, o, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "y[] does not fit into 64 bits") {
			t.Errorf("%s of %d: %v", c.body, c.w, err)
		}
	}
}

// TestLongCycle has a cycle of more elements than are in hand at a time.
func TestLongCycle(t *testing.T) {
	p := parse(t, `param N : N >= 2;
array float y[N];
output y;
y[i] = y[i+1] : { [i] : 0 <= i < N-1 };
y[N-1] = y[0] : { [] : };
`)
	for _, n := range []int64{2, maxDepth, maxDepth + 1, 3 * maxDepth} {
		_, err := run(t, p, 1, map[string]int64{"N": n}, nil)
		if !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "needs itself") {
			t.Errorf("N = %d: %v", n, err)
		}
	}
}

func TestMemory(t *testing.T) {
	p := parse(t, programs["prefix"])
	for _, c := range []struct {
		n, memory int64
		want      error
	}{{100, 9 * 201, nil}, {100, 9*201 - 1, ErrMemory}, {1 << 50, 1 << 30, ErrMemory}, {1 << 60, 1 << 30, ErrMemory}} {
		_, err := Interpret(context.Background(), p, Options{Sizes: map[string]int64{"N": c.n}, MaxMemory: c.memory, Inputs: map[string]*Tensor{"a0": {Floats: []float64{1}}}})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("N = %d with %d bytes: %v, want %v", c.n, c.memory, err, c.want)
		}
	}
}

func TestCancel(t *testing.T) {
	p := parse(t, programs["prefix"])
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Interpret(ctx, p, Options{Sizes: map[string]int64{"N": 2000}, Inputs: map[string]*Tensor{"a0": {Floats: []float64{1}}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// TestSharedPairs runs two programs that each have a faster twin, which has to give
// the same bits.
func TestSharedPairs(t *testing.T) {
	all := shared(t)
	for _, name := range []string{"ps", "gs2gmm"} {
		slow, fast := parse(t, all[name]), parse(t, all[name+"_opt"])
		for _, n := range []int64{2, 3, 11} {
			for seed := range uint64(20) {
				a, err := run(t, slow, seed, map[string]int64{"N": n}, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := run(t, fast, seed, map[string]int64{"N": n}, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, out := range slow.Outputs {
					x, y := a.Outputs[out], b.Outputs[out]
					if !slices.Equal(x.Ints, y.Ints) || !slices.Equal(x.Floats, y.Floats) {
						t.Fatalf("%s, N = %d, seed %d: %v and %v", name, n, seed, x, y)
					}
				}
			}
		}
	}
}

// TestSharedProgramsRun runs every shared program at small sizes, and wants as many
// points to be evaluated as its statements have.
func TestSharedProgramsRun(t *testing.T) {
	for name, source := range shared(t) {
		p := parse(t, source)
		sizes := map[string]int64{}
		for i, q := range p.Params {
			sizes[q.Name] = int64(3 + i%2)
		}
		o, err := run(t, p, 1, sizes, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cost, err := p.Cost(false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for k, s := range p.Statements {
			want := cost.Points(k, sizes).Int64()
			// Elements that no output needs are not computed: fewer points there.
			if got := o.Points[k]; got > want || got < want && !partly[name] {
				t.Errorf("%s: %d points of %s, want %d", name, got, s, want)
			}
		}
	}
}

// partly has the shared programs of which some elements are not needed.
var partly = map[string]bool{"lda_lw": true, "dmm_lw": true, "gs2gmm_opt": true, "windows": true}
