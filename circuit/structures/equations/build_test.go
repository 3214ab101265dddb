package equations

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile/reduction"
)

// shipped returns a file of configs/equations.
func shipped(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "configs", "equations", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func categorical(codes int) structures.Leaf {
	return func(int) circuit.Leaf { return circuit.Categorical{Categories: codes} }
}

// options returns the options of a shipped file; d is the largest duration, 0 for hmm.red.
func options(t testing.TB, name string, vars, latents, codes, d int) Options {
	o := Options{Name: name, Source: shipped(t, name), Vars: vars, Latents: latents, Leaf: categorical(codes)}
	if d > 0 {
		o.Sizes = map[string]int64{"D": int64(d)}
	}
	return o
}

// TestHMM wants the graph of structure hmm, node for node, of the equations of an HMM and
// of those of explicit durations that all are 1.
func TestHMM(t *testing.T) {
	for _, size := range [][3]int{{32, 64, 256}, {2, 3, 2}, {1, 3, 2}, {5, 2, 1}} {
		if testing.Short() {
			size[1] = min(size[1], 16)
		}
		vars, latents, codes := size[0], size[1], size[2]
		want, err := structures.HMM(structures.HMMOptions{Length: vars, Latents: latents, Tied: true, Leaf: categorical(codes)})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{options(t, "hmm.red", vars, latents, codes, 0), options(t, "hsmm.red", vars, latents, codes, 1)} {
			got, err := Build(o)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %v: %d nodes and %d edges, want %d and %d", o.Name, size, len(got.Nodes), edges(got), len(want.Nodes), edges(want))
			}
		}
	}
}

// edges counts the edges of a circuit: weights, and the units of products' children.
func edges(g *circuit.Graph) (n int) {
	for id := range g.Nodes {
		switch node := &g.Nodes[id]; node.Kind {
		case circuit.Sum:
			n += g.NumParams(circuit.NodeID(id))
		case circuit.Product:
			n += node.Units * len(node.Children)
		}
	}
	return n
}

// TestOneState builds both with one state, where a weight that is alone is 1 and needs no node.
func TestOneState(t *testing.T) {
	for _, o := range []Options{options(t, "hmm.red", 4, 1, 3, 0), options(t, "hsmm.red", 4, 1, 3, 2), options(t, "hsmm.red", 1, 1, 3, 5)} {
		g, err := Build(o)
		if err != nil {
			t.Fatal(err)
		}
		if m := mass(t, g, 5); math.Abs(m-1) > 1e-6 {
			t.Errorf("%s over %d columns: mass %v", o.Name, o.Vars, m)
		}
	}
}

// mass adds up the probabilities of all rows at random parameters.
func mass(t *testing.T, g *circuit.Graph, seed uint64) float64 {
	t.Helper()
	p, err := reference.Init(g, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	states, err := reference.States(g, reference.MissingRow(g.NumVars))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for row := range states {
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Exp(ll)
	}
	return sum
}

// TestDurations adds up all rows, also where a state may last longer than there are columns,
// and wants the edges to grow as T·S·D + T·S².
func TestDurations(t *testing.T) {
	for _, d := range []int{2, 3, 6, 9} {
		g, err := Build(options(t, "hsmm.red", 6, 3, 4, d))
		if err != nil {
			t.Fatal(err)
		}
		if m := mass(t, g, uint64(d)); math.Abs(m-1) > 1e-5 {
			t.Errorf("D = %d: mass %v", d, m)
		}
	}
	const vars, latents = 32, 8
	half := 0
	longest := 64
	if testing.Short() {
		longest = 16
	}
	for d := 1; d <= longest; d *= 4 {
		g, err := Build(options(t, "hsmm.red", vars, latents, 5, d))
		if err != nil {
			t.Fatal(err)
		}
		n := edges(g)
		if half > 0 && n > 4*half {
			t.Errorf("D = %d: %d edges, more than four times those of D/4", d, n)
		}
		half = n
		// A weight, two factors of the running product and two of the product that is summed.
		if most := vars*latents*(5*d+latents) + latents; n > most {
			t.Errorf("D = %d: %d edges, want at most %d", d, n, most)
		}
	}
}

// unitsOf has the arrays of the programs that keep an index as units, and which.
var unitsOf = map[string]string{
	"hmm":                         "al:1 e:0 next:1",
	"hsmm":                        "be:1 e:0 seg:2",
	"mixture of mixtures":         "e:1 g:1",
	"one weight over two indices": "e:1 g:1",
	"untied":                      "b:1 e:1",
	"states of two sizes":         "e:0 f:0 p:1 q:1 y:1 z:1",
	"weights of all states alike": "e:0 m:0",
	"a sum before the state":      "e:0 m:1",
	"a sum of sums":               "e:0 m:0 n:0",
	"category first":              "b:0 e:1",
	"read at a parameter":         "b:1 e:0",
}

// programs are circuits that the interpreter of the equations is compared with.
var programs = map[string]string{
	"mixture of mixtures": `param T, K, J, C : T >= 1, K >= 1, J >= 1, C >= 1;
size K = 2, J = 3;
input int x[T] in [0,C);
input float e[K,J,C], w[K], v[K,J];
array float g[K,J], f[K], out[];
output out;
g[k,j] *= e[k,j,x[t]] : { [k,j,t] : 0 <= k < K, 0 <= j < J, 0 <= t < T };
f[k] += v[k,j]*g[k,j] : { [k,j] : 0 <= k < K, 0 <= j < J };
out[] += w[k]*f[k] : { [k] : 0 <= k < K };`,
	"one weight over two indices": `param T, K, J, C : T >= 1, K >= 1, J >= 1, C >= 1;
size K = 2, J = 3;
input int x[T] in [0,C);
input float e[K,J,C], w[K,J];
array float g[K,J], out[];
output out;
g[k,j] *= e[k,j,x[t]] : { [k,j,t] : 0 <= k < K, 0 <= j < J, 0 <= t < T };
out[] += w[k,j]*g[k,j] : { [k,j] : 0 <= k < K, 0 <= j < J };`,
	"untied": `param T, S, C : T >= 1, S >= 1, C >= 1;
input int x[T] in [0,C);
input float e[T,S,C], a[S,T,S], a0[S];
array float b[T+1,S], out[];
output out;
b[t,r] += 1 : { [t,r] : t = T, 0 <= r < S };
b[t,r] += a[r,t,s]*e[t,s,x[t]]*b[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };
out[] += a0[s]*b[0,s] : { [s] : 0 <= s < S };`,
	"two orders": `param T, S, C : T >= 2, S >= 1, C >= 1;
input int x[T] in [0,C);
input float e[S,C], a[S,S,S], a0[S], a1[S,S];
array float b[T+1,S,S], out[];
output out;
b[t,r,s] += 1 : { [t,r,s] : t = T, 0 <= r < S, 0 <= s < S };
b[t,r,s] += a[r,s,q]*e[q,x[t]]*b[t+1,s,q] : { [t,r,s,q] : 0 <= t < T, 0 <= r < S, 0 <= s < S, 0 <= q < S };
out[] += a0[r]*a1[r,s]*b[0,r,s] : { [r,s] : 0 <= r < S, 0 <= s < S };`,
	"two steps at once": `param T, S, C : T >= 1, S >= 1, C >= 1;
input int x[T] in [0,C);
input float e[S,C], a[S,S], a0[S];
array float b[T+1,S], out[];
output out;
b[T,r] += 1 : { [r] : 0 <= r < S };
b[t,r] += a[r,q]*a[q,s]*e[s,x[t]]*b[t+1,s] : { [t,r,q,s] : 0 <= t < T, 0 <= r < S, 0 <= q < S, 0 <= s < S };
out[] += a0[s]*b[0,s] : { [s] : 0 <= s < S };`,
	"states of two sizes": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 4;
input int x[T] in [0,C);
input float e[S,C], f[K,C], a[S,K], b[K,S], a0[S];
array float p[T+1,S], q[T+1,K], out[];
output out;
p[t,s] = e[s,x[t]] : { [t,s] : t = T-1, 0 <= s < S };
p[t,s] = e[s,x[t]]*y[t,s] : { [t,s] : 0 <= t < T-1, 0 <= s < S };
q[t,k] = f[k,x[t]] : { [t,k] : t = T-1, 0 <= k < K };
q[t,k] = f[k,x[t]]*z[t,k] : { [t,k] : 0 <= t < T-1, 0 <= k < K };
array float y[T,S], z[T,K];
y[t,s] += a[s,k]*q[t+1,k] : { [t,s,k] : 0 <= t < T-1, 0 <= s < S, 0 <= k < K };
z[t,k] += b[k,s]*p[t+1,s] : { [t,k,s] : 0 <= t < T-1, 0 <= s < S, 0 <= k < K };
out[] += a0[s]*p[0,s] : { [s] : 0 <= s < S };`,
	"weights of all states alike": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 2;
input int x[T] in [0,C);
input float e[K,S,C], w[K], a0[S];
array float m[K,S], b[S], out[];
output out;
m[k,s] *= e[k,s,x[t]] : { [k,s,t] : 0 <= k < K, 0 <= s < S, 0 <= t < T };
b[s] += w[k]*m[k,s] : { [k,s] : 0 <= k < K, 0 <= s < S };
out[] += a0[s]*b[s] : { [s] : 0 <= s < S };`,
	"a sum before the state": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 2;
input int x[T] in [0,C);
input float e[S,C], h[S,K], a[S,K,S], c[K,S], a0[S];
array float m[T,S], b[S], out[];
output out;
m[t,s] = e[s,x[t]] : { [t,s] : 0 <= t < T, 0 <= s < S };
b[r] *= n[r,t] : { [r,t] : 0 <= t < T, 0 <= r < S };
array float n[S,T];
n[r,t] += h[r,k]*a[r,k,s]*m[t,s] : { [r,t,k,s] : 1 <= t < T, 0 <= r < S, 0 <= k < K, 0 <= s < S };
n[r,t] += h[r,k]*c[k,s]*m[t,s] : { [r,t,k,s] : t = 0, 0 <= r < S, 0 <= k < K, 0 <= s < S };
out[] += a0[s]*b[s] : { [s] : 0 <= s < S };`,
	"a sum of sums": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 2;
input int x[T] in [0,C);
input float e[S,C], h[S,K], c[K,S], a0[S];
array float m[S], n[S], out[];
output out;
m[s] *= e[s,x[t]] : { [s,t] : 0 <= s < S, 0 <= t < T };
n[r] += h[r,k]*c[k,s]*m[s] : { [r,k,s] : 0 <= r < S, 0 <= k < K, 0 <= s < S };
out[] += a0[r]*n[r] : { [r] : 0 <= r < S };`,
	"category first": `param T, S, C : T >= 1, S >= 1, C >= 1;
input int x[T] in [0,C);
input float e[C,S], a0[S];
array float b[S], out[];
output out;
b[s] *= e[x[t],s] : { [s,t] : 0 <= t < T, 0 <= s < S };
out[] += a0[s]*b[s] : { [s] : 0 <= s < S };`,
	"read at a parameter": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 4;
input int x[T] in [0,C);
input float e[S,C], a0[S];
array float b[K+1,S], out[];
output out;
b[k,s] *= e[s,x[t]] : { [k,s,t] : 0 <= k <= K, 0 <= s < S, 0 <= t < T };
out[] += a0[s]*b[K,s] : { [s] : 0 <= s < S };`,
	"factors of two extents": `param T, S, C : T >= 2, S >= 1, C >= 1;
input int x[T] in [0,C);
input float e[S,C], f[S+1,C], a0[S];
array float b[S], g[S+1], h[S], out[];
output out;
g[s] = f[s,x[0]] : { [s] : 0 <= s <= S };
h[s] *= e[s,x[t]] : { [s,t] : 0 <= s < S, 1 <= t < T };
b[s] = g[s]*h[s] : { [s] : 0 <= s < S };
out[] += a0[s]*b[s] : { [s] : 0 <= s < S };`,
	"a domain in two pieces": `param T, S, K, C : T >= 1, S >= 1, K >= 1, C >= 1;
size K = 4;
input int x[T] in [0,C);
input float e[S,C], w[K], v[K,S];
array float b[S], out[];
output out;
b[s] *= e[s,x[t]] : { [s,t] : 0 <= s < S, 0 <= t < T };
out[] += w[k]*v[k,s]*b[s] : { [k,s] : 0 <= k < K, 0 <= s < S, 2*k + 2*s != 5 };`,
}

// TestClasses wants indices that belong together by their extent, the largest first, and equal ones in the order of the arrays,
// whatever the order of maps is: runs that resume, and other machines, make the same circuit.
func TestClasses(t *testing.T) {
	const source = `param T, K, J, I, C : T >= 1, K >= 1, J >= 1, I >= 1, C >= 1;
size K = 3, J = 3, I = 5;
input int x[T] in [0,C);
input float e[J,K,I,C], w[K], v[K,J], u[K,J,I];
array float g[J,K,I], h[J,K], f[K], out[];
output out;
g[j,k,i] *= e[j,k,i,x[t]] : { [j,k,i,t] : 0 <= k < K, 0 <= j < J, 0 <= i < I, 0 <= t < T };
h[j,k] += u[k,j,i]*g[j,k,i] : { [k,j,i] : 0 <= k < K, 0 <= j < J, 0 <= i < I };
f[k] += v[k,j]*h[j,k] : { [k,j] : 0 <= k < K, 0 <= j < J };
out[] += w[k]*f[k] : { [k] : 0 <= k < K };`
	p, err := reduction.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{prog: p, tables: map[string]int{}}
	if err := m.read(); err != nil {
		t.Fatal(err)
	}
	if err := m.bind(&Options{Name: "a.red", Source: source, Vars: 2, Latents: 2, Leaf: categorical(2)}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got, want := fmt.Sprint(m.classes()), "[[{e 2} {g 2}] [{e 0} {g 0} {h 0}] [{e 1} {g 1} {h 1} {f 0}]]"; got != want {
			t.Fatalf("classes %s, want %s", got, want)
		}
	}
}

// TestInterpreter holds circuits to what the interpreter says of their equations, with and
// without units, and as they are simplified.
func TestInterpreter(t *testing.T) {
	all := map[string]string{"hmm": shipped(t, "hmm.red"), "hsmm": shipped(t, "hsmm.red")}
	for name, source := range programs {
		all[name] = source
	}
	for name, source := range all {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: name, Source: source, Vars: 3, Latents: 3, Leaf: categorical(3)}
			p, err := reduction.Parse(source)
			if err != nil {
				t.Fatal(err)
			}
			for _, blocked := range []bool{true, false} {
				m := &model{prog: p, tables: map[string]int{}}
				if err := m.read(); err != nil {
					t.Fatal(err)
				}
				if err := m.bind(&o); err != nil {
					t.Fatal(err)
				}
				m.units = map[string]int{}
				if blocked {
					if err := m.chooseUnits(); err != nil {
						t.Fatal(err)
					}
					if got, want := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(m.units), "map["), "]"), unitsOf[name]; got != want {
						t.Errorf("units %q, want %q", got, want)
					}
				}
				w := newLowering(m, &o)
				g, err := w.run()
				if err != nil {
					t.Fatal(err)
				}
				compare(t, w, g)
			}
			g, err := Build(o)
			if err != nil {
				t.Fatal(err)
			}
			if m := mass(t, g, 8); math.Abs(m-1) > 1e-6 {
				t.Errorf("mass %v", m)
			}
		})
	}
}

// compare evaluates a circuit and its equations at the same parameters, on all rows.
func compare(t *testing.T, w *lowering, g *circuit.Graph) {
	t.Helper()
	params, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	inputs := w.inputs(t, g, params)
	states, err := reference.States(g, reference.MissingRow(g.NumVars))
	if err != nil {
		t.Fatal(err)
	}
	for row := range states {
		x := &reduction.Tensor{Extents: []int64{int64(len(row))}, Ints: make([]int64, len(row))}
		for k, v := range row {
			x.Ints[k] = int64(v)
		}
		inputs[w.row.Name] = x
		want, err := reduction.Interpret(t.Context(), w.prog, reduction.Options{Sizes: w.sizes, Inputs: inputs})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		if p := want.Outputs["out"].Floats[0]; !(math.Abs(math.Exp(got)-p) <= 1e-12) {
			t.Fatalf("row %v: %v, the interpreter has %v", row, math.Exp(got), p)
		}
	}
}

// inputs returns the parameters of a circuit as the inputs of its equations.
func (w *lowering) inputs(t *testing.T, g *circuit.Graph, params reference.Params) map[string]*reduction.Tensor {
	inputs := map[string]*reduction.Tensor{}
	// put stores the parameters of an owner. roles says of each index of the array: given 'g',
	// summed 's', or the rows 'r' or columns 'c' of a node.
	put := func(array, roles string) {
		a := w.prog.Array(array)
		extents := make([]int, len(a.Extents))
		all := 1
		tensor := inputs[array]
		if tensor == nil {
			tensor = &reduction.Tensor{}
			for k := range extents {
				tensor.Extents = append(tensor.Extents, int64(w.extent(a, k)))
				all *= w.extent(a, k)
			}
			tensor.Floats = make([]float64, all)
			inputs[array] = tensor
		}
		size := func(role rune) int {
			n := 1
			for k, r := range roles {
				if r == role {
					n *= int(tensor.Extents[k])
				}
			}
			return n
		}
		index := make([]int64, len(roles))
		for at := range tensor.Floats {
			rest := at
			for k := len(index) - 1; k >= 0; k-- {
				index[k] = int64(rest) % tensor.Extents[k]
				rest /= int(tensor.Extents[k])
			}
			in := func(role rune) (n int) {
				for k, r := range roles {
					if r == role {
						n = n*int(tensor.Extents[k]) + int(index[k])
					}
				}
				return n
			}
			given := []int64{}
			for k, r := range roles {
				if r == 'g' {
					given = append(given, index[k])
				}
			}
			owner, ok := w.owners[fmt.Sprint(array, given)]
			if !ok { // a weight that is alone
				tensor.Floats[at] = 1
				continue
			}
			tensor.Floats[at] = params[owner][(in('r')*size('s')+in('s'))*size('c')+in('c')]
		}
	}
	for _, list := range w.written {
		for _, r := range list {
			for k, l := range r.levels {
				put(l.weight.Array, roles(len(l.weight.index), r.shapes[k].row, r.shapes[k].column, l.summed))
			}
		}
	}
	for name, code := range w.tables {
		row, ok := w.units[name]
		if !ok {
			row = -1
		}
		put(name, roles(len(w.prog.Array(name).Extents), row, code, nil))
	}
	return inputs
}

func roles(n, row, column int, summed []bool) string {
	list := slices.Repeat([]byte{'g'}, n)
	for k := range list {
		switch {
		case k == row:
			list[k] = 'r'
		case k == column:
			list[k] = 'c'
		case summed != nil && summed[k]:
			list[k] = 's'
		}
	}
	return string(list)
}
