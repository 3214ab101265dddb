package micro

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// singleRows is the number of rows of a test circuit: whole calls of every set.
const singleRows = 64

// singleCircuit is a random circuit of single units with rows, in no set's layout.
type singleCircuit struct {
	groups  []singleGroup
	vectors int
	tables  [][2][SingleCodes]uint32
	columns [][]uint32
	counts  int
	weights [][2]uint32
	inputs  int // vectors before those of the groups
	m       [][]float32
	e       [][]int32
	far     bool
}

type singleGroup struct {
	operands [][]singleFactor
	sums     []int // vectors
	weights  []int // by sum: the first
	counts   []int
}

type singleFactor struct {
	vector                    int // -1: a leaf
	table, column, codes, add int
}

// newSingleCircuit makes a circuit whose values are, with far, as far apart as exponents are.
func newSingleCircuit(rng *rand.Rand, far bool) *singleCircuit {
	c := &singleCircuit{inputs: 3, far: far}
	weight := func() [2]uint32 {
		if rng.IntN(6) == 0 {
			return [2]uint32{}
		}
		return [2]uint32{math.Float32bits(1 + rng.Float32()), uint32(-int32(rng.IntN(100)))}
	}
	for range 5 {
		col := make([]uint32, singleRows)
		for r := range col {
			col[r] = uint32(rng.IntN(SingleCodes))
		}
		c.columns = append(c.columns, col)
	}
	for range 9 {
		var t [2][SingleCodes]uint32
		for k := range SingleCodes {
			w := weight()
			t[0][k], t[1][k] = w[0], w[1]
		}
		c.tables = append(c.tables, t)
	}
	c.vectors = c.inputs
	for range c.inputs {
		m, e := make([]float32, singleRows), make([]int32, singleRows)
		for r := range m {
			if rng.IntN(5) == 0 {
				continue
			}
			m[r], e[r] = 1+rng.Float32(), int32(rng.IntN(200)-100)
			if far {
				e[r] = []int32{Lost, Lost + 1, Lost + 300, -1 << 29, 0, Most - 1, Most}[rng.IntN(7)]
			}
		}
		c.m, c.e = append(c.m, m), append(c.e, e)
	}
	for k := range 12 {
		var g singleGroup
		for range 1 + rng.IntN(3) {
			var list []singleFactor
			n := 1 + rng.IntN(4)
			if k == 5 {
				n = SingleFactors - 2
			}
			for range n {
				list = append(list, singleFactor{vector: -1, table: rng.IntN(len(c.tables)), column: rng.IntN(len(c.columns)), codes: rng.IntN(SingleCodes), add: c.counts})
				c.counts += SingleCodes
			}
			for range rng.IntN(3) {
				list = append(list, singleFactor{vector: rng.IntN(c.vectors)})
			}
			g.operands = append(g.operands, list)
		}
		for range 1 + rng.IntN(2) {
			g.sums, g.weights, g.counts = append(g.sums, c.vectors), append(g.weights, len(c.weights)), append(g.counts, c.counts)
			c.vectors++
			for range g.operands {
				c.weights = append(c.weights, weight())
				c.counts++
			}
		}
		c.groups = append(c.groups, g)
	}
	return c
}

// singleLayout is a circuit in the layout of a set.
type singleLayout struct {
	*singleCircuit
	set     *SingleSet
	args    SingleArgs
	starts  []int32
	values  []uint32
	into    []float32
	codes   []uint32
	counted []float32
}

// lay writes the tape of a circuit for a set.
func (c *singleCircuit) lay(s *SingleSet) *singleLayout {
	tape, starts, most := []int32{}, []int32{}, 0
	for _, g := range c.groups {
		starts = append(starts, int32(len(tape)))
		most = max(most, len(g.operands))
		tape = append(tape, int32(len(g.operands)), int32(len(g.sums)))
		for _, list := range g.operands {
			nodes := 0
			for _, f := range list {
				if f.vector >= 0 {
					nodes++
				}
			}
			tape = append(tape, int32(len(list)-nodes), int32(nodes))
			for _, f := range list {
				if f.vector >= 0 {
					tape = append(tape, int32(2*s.Rows*f.vector))
				} else {
					tape = append(tape, int32(2*SingleCodes*f.table), int32(s.Rows*f.column), int32(f.codes), int32(f.add))
				}
			}
		}
		for i, v := range g.sums {
			tape = append(tape, int32(2*s.Rows*v), int32(2*g.weights[i]), int32(g.counts[i]))
		}
	}
	tables, weights := []uint32{}, []uint32{}
	for _, t := range c.tables {
		tables = append(append(tables, t[0][:]...), t[1][:]...)
	}
	for _, w := range c.weights {
		weights = append(weights, w[:]...)
	}
	l := &singleLayout{
		singleCircuit: c, set: s, starts: append(starts, int32(len(tape))),
		values: make([]uint32, 2*s.Rows*c.vectors), into: make([]float32, s.Rows*c.vectors),
		codes: make([]uint32, s.Rows*len(c.columns)), counted: make([]float32, c.counts),
	}
	l.args = SingleArgs{
		Tape: &tape[0], Starts: &l.starts[0], Groups: len(c.groups), Values: &l.values[0], Flows: &l.into[0], Tables: &tables[0],
		Codes: &l.codes[0], Weights: &weights[0], Counts: &l.counted[0], Scratch: &make([]uint32, 3*s.Rows*most)[0],
		Far: c.far,
	}
	return l
}

// load writes the cells and the inputs of the set's rows from lo on.
func (l *singleLayout) load(lo int) {
	rows := l.set.Rows
	for i, col := range l.columns {
		copy(l.codes[i*rows:], col[lo:lo+rows])
	}
	for v := range l.inputs {
		for r := range rows {
			l.values[2*rows*v+r], l.values[2*rows*v+rows+r] = math.Float32bits(l.m[v][lo+r]), uint32(l.e[v][lo+r])
		}
	}
}

// run evaluates the circuit by a set: mantissas and exponents of the vectors, flows into the
// inputs, and counts.
func (c *singleCircuit) run(s *SingleSet) (m, e [][]float64, flows [][]float32, counts []float32) {
	l := c.lay(s)
	m, e = make([][]float64, c.vectors), make([][]float64, c.vectors)
	flows = make([][]float32, c.inputs)
	for lo := 0; lo < singleRows; lo += s.Rows {
		l.load(lo)
		s.Forward(&l.args)
		for v := range c.vectors {
			for r := range s.Rows {
				m[v] = append(m[v], float64(math.Float32frombits(l.values[2*s.Rows*v+r])))
				e[v] = append(e[v], float64(int32(l.values[2*s.Rows*v+s.Rows+r])))
			}
		}
		for r := range s.Rows {
			l.into[s.Rows*(c.vectors-1)+r] = 1
		}
		s.Backward(&l.args)
		for v := range c.inputs {
			flows[v] = append(flows[v], l.into[s.Rows*v:s.Rows*(v+1)]...)
			clear(l.into[s.Rows*v : s.Rows*(v+1)])
		}
		for i, f := range l.into {
			if f != 0 {
				panic(fmt.Sprintf("flow %v is left at %d", f, i))
			}
		}
	}
	return m, e, flows, l.counted
}

// TestSingle compares every set's kernels of single units with the portable ones.
func TestSingle(t *testing.T) {
	for _, set := range All() {
		t.Run(set.Name, func(t *testing.T) {
			for seed := range uint64(40) {
				c := newSingleCircuit(rand.New(rand.NewPCG(seed, 9)), seed%2 == 1)
				m, e, flows, counts := c.run(set.Single)
				wm, we, wantFlows, wantCounts := c.run(genericSingle)
				for v := range m {
					for r := range m[v] {
						if got, want := math.Log2(m[v][r])+e[v][r], math.Log2(wm[v][r])+we[v][r]; got != want && !(math.Abs(got-want) <= 1e-5*max(1, math.Abs(want))) {
							t.Fatalf("seed %d vector %d row %d: %v·2^%v, want %v·2^%v", seed, v, r, m[v][r], e[v][r], wm[v][r], we[v][r])
						}
					}
				}
				same := func(what string, got, want []float32) {
					t.Helper()
					for i, w := range want {
						if !(math.Abs(float64(got[i]-w)) <= 1e-5*math.Abs(float64(w))+1e-6) {
							t.Fatalf("seed %d: %s %d is %v, want %v", seed, what, i, got[i], w)
						}
					}
				}
				for v := range flows {
					same(fmt.Sprintf("flow into vector %d in row", v), flows[v], wantFlows[v])
				}
				same("count", counts, wantCounts)
			}
		})
	}
}

// TestSingleNumbers evaluates one sum by hand: 0.5·(0.25·2^-10) + 0.25·(1.5·2^-12) of a leaf
// and a vector, and the shares of its operands.
func TestSingleNumbers(t *testing.T) {
	leaf := [2][SingleCodes]uint32{{math.Float32bits(1), 0}, {^uint32(11), 0}} // 2^-12, then 0
	c := &singleCircuit{
		groups: []singleGroup{{
			operands: [][]singleFactor{{{vector: -1, codes: 2}}, {{vector: 0}}},
			sums:     []int{1}, weights: []int{0}, counts: []int{2},
		}},
		vectors: 2, inputs: 1, counts: 4, tables: [][2][SingleCodes]uint32{leaf},
		columns: [][]uint32{make([]uint32, singleRows)},
		weights: [][2]uint32{{math.Float32bits(1), ^uint32(0)}, {math.Float32bits(1), ^uint32(1)}},
		m:       [][]float32{make([]float32, singleRows)}, e: [][]int32{make([]int32, singleRows)},
	}
	for r := range singleRows {
		c.m[0][r], c.e[0][r] = 1.5, -12
		c.columns[0][r] = uint32(r % 2)
	}
	for _, set := range All() {
		m, e, flows, counts := c.run(set.Single)
		for r := range singleRows {
			wantM, wantE, share := 1.75, -13.0, 0.375/0.875 // (0.5 + 0.375)·2^-12
			if r%2 == 1 {
				wantM, wantE, share = 1.5, -14, 1
			}
			if m[1][r] != wantM || e[1][r] != wantE || math.Abs(float64(flows[0][r])-share) > 1e-6 {
				t.Fatalf("%s row %d: %v·2^%v and flow %v, want %v·2^%v and %v", set.Name, r, m[1][r], e[1][r], flows[0][r], wantM, wantE, share)
			}
		}
		half := float64(singleRows) / 2
		for i, want := range []float64{half * (0.5 / 0.875), 0, half * (0.5 / 0.875), half * (1 + 0.375/0.875)} {
			if math.Abs(float64(counts[i])-want) > 1e-4 {
				t.Errorf("%s count %d is %v, want %v", set.Name, i, counts[i], want)
			}
		}
	}
}

// wideSingle is a circuit of one sum over n products of a leaf and the same vector, equally
// likely.
func wideSingle(n int) *singleCircuit {
	weight := singleWord(1 / float32(n))
	c := &singleCircuit{
		groups:  []singleGroup{{sums: []int{1}, weights: []int{0}, counts: []int{2}}},
		vectors: 2, inputs: 1, counts: 2 + n,
		tables:  [][2][SingleCodes]uint32{{{math.Float32bits(1.4), math.Float32bits(1.2)}, {^uint32(0), ^uint32(1)}}}, // 0.7, 0.3
		columns: [][]uint32{make([]uint32, singleRows)},
		m:       [][]float32{make([]float32, singleRows)}, e: [][]int32{make([]int32, singleRows)},
	}
	for r := range singleRows {
		c.m[0][r], c.e[0][r], c.columns[0][r] = 1, -1, uint32(r%2)
	}
	g := &c.groups[0]
	for range n {
		g.operands = append(g.operands, []singleFactor{{vector: -1, codes: 2}, {vector: 0}})
		c.weights = append(c.weights, weight)
	}
	return c
}

// singleWord returns the bits of the mantissa and the exponent of a positive number.
func singleWord(v float32) [2]uint32 {
	m, e := math.Frexp(float64(v))
	return [2]uint32{math.Float32bits(float32(2 * m)), uint32(int32(e - 1))}
}

// TestSingleWide wants sums of very many operands, where single roundings add up, as exact as
// those of few.
func TestSingleWide(t *testing.T) {
	for _, set := range All() {
		for _, n := range []int{63, 64, 65, 128, 60000} {
			m, e, _, _ := wideSingle(n).run(set.Single)
			for r := range singleRows {
				want := float64(float32(1/float32(n))) * float64(n) * []float64{0.35, 0.15}[r%2]
				if got := math.Ldexp(m[1][r], int(e[1][r])); !(math.Abs(got/want-1) <= 4e-6) {
					t.Fatalf("%s: %d operands in row %d: %v, want %v, off by %.2g", set.Name, n, r, got, want, got/want-1)
				}
			}
		}
	}
}

// BenchmarkSingle runs circuits of 4,000 products, in sums of some of them, up and down.
func BenchmarkSingle(b *testing.B) {
	for _, set := range All() {
		for _, n := range []int{2, 3, 4, 8, 64, 1000} {
			c := wideSingle(n)
			for len(c.groups) < 4000/n {
				g := c.groups[0]
				g.sums, g.operands = []int{c.vectors}, nil
				for range n {
					g.operands = append(g.operands, []singleFactor{{vector: -1, codes: 2}, {vector: c.vectors - 1}})
				}
				c.groups = append(c.groups, g)
				c.vectors++
			}
			l := c.lay(set.Single)
			l.load(0)
			for name, call := range map[string]func(a *SingleArgs){"forward": set.Single.Forward, "backward": set.Single.Backward} {
				b.Run(fmt.Sprintf("set=%s/do=%s/operands=%d", set.Name, name, n), func(b *testing.B) {
					for b.Loop() {
						call(&l.args)
					}
				})
			}
		}
	}
}
